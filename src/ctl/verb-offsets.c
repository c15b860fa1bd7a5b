/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cotenant offsets: a file for offsets.d from a library that still has its symbols.
 */
#include "ctl/ctl.h"

#include "audit/offsets.h"

#include <errno.h>
#include <fcntl.h>

/* So much code alike at each of some hundred calls is the same code. */
#define CODE_COMPARED 64

struct source {
	const char *path;
	int fd;
	struct library_image image;
};

static void source_done(struct source *s)
{
	if (s->fd >= 0)
		close(s->fd);
	library_image_done(&s->image);
}

static int complain(const struct ctl *ctl, const char *path, const char *what)
{
	fprintf(stderr, "cotenant %s: %s: %s\n", verbs[ctl->verb].name, path, what);
	return 1;
}

static int source_open(const struct ctl *ctl, const char *path, struct source *s)
{
	int r;

	s->path = path;
	s->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (s->fd < 0)
		return complain(ctl, path, strerrordesc_np(errno));
	r = library_read(s->fd, LIBRARY_ALL, &s->image);
	if (r == -ENOEXEC)
		return complain(ctl, path, "is no library of 64-bit x86 programs");
	return r < 0 ? complain(ctl, path, strerrordesc_np(-r)) : 0;
}

static bool same_code(const struct source *a, uint64_t offset_a, const struct source *b,
		      uint64_t offset_b)
{
	unsigned char in_a[CODE_COMPARED], in_b[CODE_COMPARED];

	return pread(a->fd, in_a, sizeof(in_a), offset_a) == sizeof(in_a) &&
	       pread(b->fd, in_b, sizeof(in_b), offset_b) == sizeof(in_b) &&
	       memcmp(in_a, in_b, sizeof(in_a)) == 0;
}

/* Do the calls of @symbols lie at the same addresses in @library? */
static int check_same_build(const struct ctl *ctl, const struct source *symbols,
			    struct source *library)
{
	bool same_id = *library->image.build_id &&
		       str_eq(symbols->image.build_id, library->image.build_id);
	size_t i, known = library->image.n_calls;
	const struct library_call *call;
	char what[200];

	for (i = 0; i < symbols->image.n_calls; i++) {
		call = &symbols->image.calls[i];
		library->image.n_calls = known;
		if (library_add(library->fd, &library->image, library_call_name(call->row),
				call->address) == 0 &&
		    (same_id || library->image.n_calls == known ||
		     same_code(symbols, call->offset, library, library->image.calls[known].offset)))
			continue;
		snprintf(what, sizeof(what), "is another build than %.100s: %s is elsewhere",
			 symbols->path, library_call_name(call->row));
		return complain(ctl, library->path, what);
	}
	return 0;
}

static json_t *offsets_json(const struct offsets *offsets)
{
	json_t *calls = json_object();
	size_t i;

	for (i = 0; i < offsets->n_calls; i++)
		json_object_set_new(calls, offsets->calls[i].name,
				    json_integer(offsets->calls[i].address));
	return json_pack("{s:s, s:s, s:s, s:o}", "build-id", offsets->build_id, "driver",
			 offsets->driver, "cuda", offsets->cuda, "calls", calls);
}

static int print(const struct ctl *ctl, const struct source *symbols, const struct source *library)
{
	const char *driver = ctl_option(ctl, "driver"), *cuda = ctl_option(ctl, "cuda");
	_cleanup_(offsets_done) struct offsets offsets = {};
	_cleanup_free_ char *text = NULL;
	size_t i;
	int r = 0;

	if ((driver && !str_copy(offsets.driver, sizeof(offsets.driver), driver)) ||
	    (cuda && !str_copy(offsets.cuda, sizeof(offsets.cuda), cuda)))
		return ctl_usage(ctl, "a version is something like 550.163.01 or 12.4");
	if (!*library->image.build_id)
		return complain(ctl, library->path,
				"has no build-id, by which a file could name it");
	str_copy(offsets.build_id, sizeof(offsets.build_id), library->image.build_id);
	for (i = 0; r == 0 && i < symbols->image.n_calls; i++)
		r = offsets_add(&offsets, library_call_name(symbols->image.calls[i].row),
				symbols->image.calls[i].address);
	if (r == 0 && ctl->json)
		return ctl_print_json(offsets_json(&offsets));
	text = r == 0 ? offsets_print(&offsets) : NULL;
	if (!text)
		return complain(ctl, symbols->path, "no memory");
	fputs(text, stdout);
	return 0;
}

int verb_offsets(const struct ctl *ctl)
{
	_cleanup_(source_done) struct source symbols = { .fd = -1 }, library = { .fd = -1 };
	const char *other = ctl_option(ctl, "for");
	int r;

	if (ctl->argc != 1)
		return ctl_usage(ctl, "say which file has the symbols");
	r = source_open(ctl, ctl->argv[0], &symbols);
	if (r == 0 && symbols.image.n_calls == 0)
		r = complain(ctl, symbols.path, "has no symbols of libcuda's calls");
	if (r == 0 && other)
		r = source_open(ctl, other, &library);
	if (r == 0 && other)
		r = check_same_build(ctl, &symbols, &library);
	return r ? r : print(ctl, &symbols, other ? &library : &symbols);
}

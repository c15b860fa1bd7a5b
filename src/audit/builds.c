// SPDX-License-Identifier: Apache-2.0
/*
 * Builds of libcuda whose symbols do not tell where its calls are.
 *
 * A file of the offsets folder tells it for the build that it names. A copy for which there is none
 * is kept in mind with the reason, so that whoever uses it can be called unprotected.
 */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "priv.h"

/* No memory is asked for, in any program, that does not begin with a context and one of these. */
#define CALL_THAT_ALL_HAVE "cuMemAlloc_v2"
#define NOT_PROBEABLE	   524 /* the kernel's own ENOTSUPP */

/* --- copies that stay unprobed
 * ------------------------------------------------------------------------- */

static struct engine_unprobed *unprobed_find(struct engine *engine, dev_t dev, ino_t ino)
{
	for (size_t i = 0; i < engine->n_unprobed; i++)
		if (engine->unprobed[i].dev == dev && engine->unprobed[i].ino == ino)
			return &engine->unprobed[i];
	return NULL;
}

bool builds_is_unprobed(struct engine *engine, dev_t dev, ino_t ino)
{
	return unprobed_find(engine, dev, ino) != NULL;
}

static void unprobed_take(struct engine *engine, size_t at)
{
	if (at >= engine->n_unprobed - engine->n_untold)
		engine->n_untold--;
	memmove(&engine->unprobed[at], &engine->unprobed[at + 1],
		(--engine->n_unprobed - at) * sizeof(engine->unprobed[0]));
}

static void unprobed_forget(struct engine *engine, const struct stat *st)
{
	struct engine_unprobed *u = unprobed_find(engine, st->st_dev, st->st_ino);

	if (u)
		unprobed_take(engine, u - engine->unprobed);
}

const char *builds_why(int r)
{
	switch (r) {
	case -EDQUOT:
		return "as many copies as its users may have are probed already";
	case -ENOEXEC:
		return "it is no library any more";
	case -NOT_PROBEABLE:
		return "the kernel can put no probes on its code";
	default:
		return strerror(-r);
	}
}

void builds_tell_again(struct engine *engine)
{
	char text[600];

	for (; engine->on_event && engine->n_untold; engine->n_untold--) {
		const struct engine_unprobed *u =
			&engine->unprobed[engine->n_unprobed - engine->n_untold];

		snprintf(text, sizeof(text), "%s: %s", u->path, u->why);
		events_tell(engine, AUDIT_EVENT_UNPROBED, 0, text);
	}
}

/* There is room for the newest. */
void builds_tell_unprobed(struct engine *engine, const char *path, const struct stat *st,
			  const char *build_id, const char *why)
{
	struct engine_unprobed *u = unprobed_find(engine, st->st_dev, st->st_ino);

	if (u && str_eq(u->why, why))
		return;
	unprobed_forget(engine, st);
	if (engine->n_unprobed == ARRAY_SIZE(engine->unprobed))
		unprobed_take(engine, 0);
	u = &engine->unprobed[engine->n_unprobed++];
	u->dev = st->st_dev;
	u->ino = st->st_ino;
	str_copy(u->path, sizeof(u->path), path);
	str_copy(u->build_id, sizeof(u->build_id), build_id);
	str_copy(u->why, sizeof(u->why), why);
	engine->n_untold++;
	builds_tell_again(engine);
}

int engine_each_unprobed(const struct engine *engine, engine_unprobed_fn fn, void *userdata)
{
	for (size_t i = 0; i < engine->n_unprobed; i++) {
		int r = fn(&engine->unprobed[i], userdata);

		if (r)
			return r;
	}
	return 0;
}

/* --- files of offsets
 * ---------------------------------------------------------------------------------- */

static void tell_refused(struct engine *engine, const struct offsets_file *file)
{
	char text[600];

	if (file->error.line)
		snprintf(text, sizeof(text), "%s:%u: %s", file->path, file->error.line,
			 file->error.reason);
	else
		snprintf(text, sizeof(text), "%s: %s", file->path, file->error.reason);
	events_tell(engine, AUDIT_EVENT_OFFSETS_REFUSED, 0, text);
}

/* What is not known here, as without NVML, contradicts nothing. */
static int version_check(const char *what, const char *in_file, const char *running,
			 struct ini_error *error)
{
	if (!*in_file || !*running || str_eq(in_file, running))
		return 0;
	return ini_refuse(error, 0, "it is for %s %s, and %s runs here", what, in_file, running);
}

static int file_apply(struct engine *engine, struct offsets_file *file, int fd,
		      struct library_image *image)
{
	int r;

	r = version_check("driver", file->offsets.driver, engine->driver_version, &file->error);
	if (r == 0)
		r = version_check("CUDA", file->offsets.cuda, engine->cuda_version, &file->error);
	if (r == 0)
		r = offsets_apply(&file->offsets, fd, image, &file->error);
	if (r != -EINVAL)
		return r;
	file->refused = true;
	tell_refused(engine, file);
	return 0;
}

static void why_unprobed(const struct library_image *image, const struct offsets_file *file,
			 char *ret, size_t size)
{
	if (file && file->refused)
		snprintf(ret, size, "its symbols tell no calls, and %s is refused: %s", file->path,
			 file->error.reason);
	else if (file)
		snprintf(ret, size, "its symbols tell no calls, and %s has no %s", file->path,
			 CALL_THAT_ALL_HAVE);
	else if (*image->build_id)
		snprintf(ret, size,
			 "its symbols tell no calls, and no file of offsets.d is for its build-id "
			 "%s",
			 image->build_id);
	else
		snprintf(
			ret, size,
			"its symbols tell no calls, and it has no build-id that a file could name");
}

int builds_complete(struct engine *engine, const char *path, int fd, const struct stat *st,
		    struct library_image *image)
{
	struct offsets_file *file = offsets_dir_find(&engine->offsets, image->build_id);
	int r = file ? file_apply(engine, file, fd, image) : 0;
	char why[300];

	if (r < 0)
		return r;
	if (!image->looks_up || library_has(image, CALL_THAT_ALL_HAVE)) {
		unprobed_forget(engine, st);
	} else {
		why_unprobed(image, file, why, sizeof(why));
		builds_tell_unprobed(engine, path, st, image->build_id, why);
	}
	return image->n_calls ? 0 : -ENOEXEC;
}

int builds_init(struct engine *engine, const struct engine_options *options)
{
	engine->offsets_dir = strdup(options->offsets_dir ? options->offsets_dir : "");
	if (!engine->offsets_dir)
		return -ENOMEM;
	if (options->driver_version)
		str_copy(engine->driver_version, sizeof(engine->driver_version),
			 options->driver_version);
	if (options->cuda_version)
		str_copy(engine->cuda_version, sizeof(engine->cuda_version), options->cuda_version);
	return *engine->offsets_dir ? offsets_dir_load(engine->offsets_dir, &engine->offsets) : 0;
}

void builds_done(struct engine *engine)
{
	offsets_dir_done(&engine->offsets);
	free(engine->offsets_dir);
}

int engine_offsets_reload(struct engine *engine)
{
	struct offsets_dir dir = {};
	int r = offsets_dir_load(engine->offsets_dir, &dir);

	if (r < 0)
		return r;
	offsets_dir_done(&engine->offsets);
	engine->offsets = dir;
	for (size_t i = 0; i < dir.n_files; i++)
		if (dir.files[i].refused)
			tell_refused(engine, &dir.files[i]);
	watch_again(engine);
	return 0;
}

int engine_each_offsets(const struct engine *engine, engine_offsets_fn fn, void *userdata)
{
	for (size_t i = 0; i < engine->offsets.n_files; i++) {
		const struct offsets_file *file = &engine->offsets.files[i];
		int r = fn(&(struct engine_offsets){ file->path, file->offsets.build_id,
						     file->refused ? file->error.reason : NULL,
						     file->error.line },
			   userdata);

		if (r)
			return r;
	}
	return 0;
}

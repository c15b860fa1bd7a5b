/* SPDX-License-Identifier: Apache-2.0 */
/* cotenant doctor: may the limits be trusted here? */
#include "ctl/ctl.h"
#include "ctl/table.h"

static void print_features(const json_t *features)
{
	const json_t *f;
	size_t i;

	printf("this kernel:\n");
	json_array_foreach(features, i, f)
		printf("  %-4s %-22s %s%s%s\n",
		       json_is_true(json_object_get(f, "works")) ? "yes" : "no",
		       json_string_value(json_object_get(f, "name")),
		       json_string_value(json_object_get(f, "gives")),
		       *json_string_value(json_object_get(f, "reason")) ? ": " : "",
		       json_string_value(json_object_get(f, "reason")));
}

static void print_libraries(const json_t *libraries)
{
	const json_t *l;
	size_t i;

	printf("probed:\n");
	if (json_array_size(libraries) == 0)
		printf("  nothing at present: no process that is watched maps libcuda\n");
	json_array_foreach(libraries, i, l)
		printf("  %s (build %.12s, %lld calls, %lld unknown)\n",
		       json_string_value(json_object_get(l, "path")),
		       json_string_value(json_object_get(l, "build_id")),
		       (long long)json_integer_value(json_object_get(l, "calls")),
		       (long long)json_integer_value(json_object_get(l, "unknown_calls")));
}

static void print_sentences(const json_t *list, const char *label)
{
	const json_t *sentence;
	size_t i;

	if (json_array_size(list) > 0)
		printf("%s:\n", label);
	json_array_foreach(list, i, sentence)
		printf("  %s\n", json_string_value(sentence));
}

static void print_unprotected(const json_t *list)
{
	const json_t *p;
	char *bytes;
	size_t i;

	if (json_array_size(list) > 0)
		printf("unprotected:\n");
	json_array_foreach(list, i, p) {
		bytes = cell_size(json_object_get(p, "bytes"));
		printf("  process %lld (%s of %s) has %s of device %lld: %s\n",
		       (long long)json_integer_value(json_object_get(p, "pid")),
		       json_string_value(json_object_get(p, "command")),
		       json_string_value(json_object_get(p, "user")), bytes ? bytes : "-",
		       (long long)json_integer_value(json_object_get(p, "gpu")),
		       json_string_value(json_object_get(p, "why")));
		free(bytes);
	}
}

static void print_report(const json_t *d)
{
	const char *no_devices = json_string_value(json_object_get(d, "no_devices"));

	printf("rung: %s\n", json_string_value(json_object_get(d, "rung")));
	printf("devices: %lld%s%s\n", (long long)json_integer_value(json_object_get(d, "devices")),
	       no_devices ? ", " : "", no_devices ? no_devices : "");
	print_features(json_object_get(d, "features"));
	print_libraries(json_object_get(d, "libraries"));
	print_sentences(json_object_get(d, "offsets"), "files of offsets");
	print_sentences(json_object_get(d, "guaranteed"), "guaranteed");
	print_sentences(json_object_get(d, "advisory"), "advisory only");
	print_unprotected(json_object_get(d, "unprotected"));
	print_sentences(json_object_get(d, "refused_files"), "refused files");
	print_sentences(json_object_get(d, "problems"), "problems");
}

int verb_doctor(const struct ctl *ctl)
{
	bool trusted;
	json_t *d;

	if (ctl_call(ctl, API_DAEMON_DOCTOR, NULL, &d))
		return 1;
	trusted = !str_eq(json_string_value(json_object_get(d, "rung")), "none") &&
		  json_array_size(json_object_get(d, "unprotected")) == 0;
	if (ctl->json) {
		ctl_print_json(d);
	} else {
		print_report(d);
		json_decref(d);
	}
	return trusted ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
/* Every call of the driver has a class, and what is generic can be marshalled. */
#include "forward/wire.h"

#include "base/check.h"

#include <string.h>

static bool is_generic(const struct wire_call *wire)
{
	return wire->hand != WIRE_HAND && wire->class != WIRE_GUEST && wire->class != WIRE_REFUSED;
}

static bool is_pointer(const struct wire_argument *argument)
{
	return argument->kind >= WIRE_OUT;
}

/* Elements have a size, and what counts them is a number, or for a list a pointer to one. */
static bool argument_is_sound(const struct wire_call *wire, const struct wire_argument *argument)
{
	const struct wire_argument *count = &wire->arguments[argument->count];

	switch (argument->kind) {
	case WIRE_OUT_N:
	case WIRE_IN_N:
	case WIRE_HANDLES:
	case WIRE_OUT_HANDLES:
		return argument->size && count->kind == WIRE_NUMBER;
	case WIRE_LIST:
		return argument->handle && count->kind == WIRE_INOUT;
	case WIRE_RANGE:
	case WIRE_BUFFER:
		return count->kind == WIRE_NUMBER;
	case WIRE_HANDLE:
	case WIRE_OUT_HANDLE:
		return argument->handle != HANDLE_NONE;
	case WIRE_OUT:
	case WIRE_IN:
	case WIRE_INOUT:
		return argument->size > 0;
	default:
		return true;
	}
}

static void test_every_call(void)
{
	size_t i, k, n_classed = 0, n_same = 0, n_sound = 0, n_arguments = 0;

	for (i = 0; i < CALL_N; i++) {
		const struct wire_call *wire = &wire_calls[i];
		size_t n = 0;

		while (n < CALL_N_ARGUMENTS_MAX && calls[i].arguments[n])
			n++;
		n_same += wire->n_arguments == n;
		n_classed += wire->class <= WIRE_GUEST;
		for (k = 0; is_generic(wire) && k < n; k++) {
			n_arguments++;
			if (argument_is_sound(wire, &wire->arguments[k]))
				n_sound++;
			else
				printf("%s: argument %zu\n", calls[i].name, k);
		}
	}
	check(n_classed == CALL_N, "wire: every call has a class");
	check(n_same == CALL_N, "wire: as many arguments as in calls.def");
	check(n_sound == n_arguments, "wire: every argument can be marshalled");
}

static void test_posted(void)
{
	size_t i, k, n_bad = 0;

	for (i = 0; i < CALL_N; i++) {
		const struct wire_call *wire = &wire_calls[i];

		if (wire->class != WIRE_POST || !is_generic(wire))
			continue;
		for (k = 0; k < wire->n_arguments; k++)
			n_bad += is_pointer(&wire->arguments[k]) &&
				 wire->arguments[k].kind != WIRE_IN &&
				 wire->arguments[k].kind != WIRE_IN_N &&
				 wire->arguments[k].kind != WIRE_BUFFER;
	}
	check(n_bad == 0, "wire: nobody waits for what a posted call writes");
}

int main(void)
{
	char text[2 * WIRE_HASH_SIZE + 1];

	test_every_call();
	test_posted();
	wire_hash_text(wire_hash, text);
	check(strlen(text) == 2 * WIRE_HASH_SIZE, "wire: the version as text");
	check(strcmp(wire_call_name(CALL_ID_cuLaunchKernel), "cuLaunchKernel") == 0 &&
		      strcmp(wire_call_name(CALL_N), "?") == 0,
	      "wire: names");
	check(sizeof(struct lane) == 192 && sizeof(struct wire_callback) == 64 &&
		      sizeof(struct wire_message) == 104 && sizeof(struct session_block) == 128,
	      "transport: the structures have the size that both carriers expect");
	return check_result();
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the guest's library defines and makes calls.
 *
 * Most of them are made by the table: generate.py writes their entries. One that needs more is written
 * by hand as CALL(name, arguments), the exported function itself; a pair that differs only in what a
 * default stream is as CALL_TWINS().
 */
#ifndef FORWARD_GUEST_CALL_H
#define FORWARD_GUEST_CALL_H

#include "forward/guest/session.h"
#include "forward/wire.h"

#include "src/cuda/cuda_abi.h"

#define EXPORT __attribute__((visibility("default")))

#define CALL(name, ...)                                                                            \
	EXPORT CUresult name(__VA_ARGS__);                                                         \
	EXPORT CUresult name(__VA_ARGS__)

/*
 * Defines name and its twin by one body, which is told by `id` which of them was called.
 * @args is the list of arguments in parentheses, @names the same without types.
 */
#define CALL_TWINS(name, suffix, args, names)                                                      \
	static CUresult do_##name(enum call_id id, TWIN_STRIP args);                               \
	EXPORT CUresult name args;                                                                 \
	EXPORT CUresult name args                                                                  \
	{                                                                                          \
		return do_##name(CALL_ID_##name, TWIN_STRIP names);                                \
	}                                                                                          \
	EXPORT CUresult name##suffix args;                                                         \
	EXPORT CUresult name##suffix args                                                          \
	{                                                                                          \
		return do_##name(CALL_ID_##name##suffix, TWIN_STRIP names);                        \
	}                                                                                          \
	static CUresult do_##name(_unused_ enum call_id id, TWIN_STRIP args)
#define TWIN_STRIP(...) __VA_ARGS__

/** call_words() - make a call by the table; words are its arguments as they are in registers */
CUresult call_words(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);

/**
 * call_words_awaited() - the same, whatever the call's class, for who waits for it himself
 *
 * As lane_post_awaited(); what fails is told by lane_error().
 */
CUresult call_words_awaited(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);

/** CALL_WORDS() - the same with arguments that are integers or pointers */
#define CALL_WORDS(id, ...) call_words(id, (const uint64_t[CALL_N_ARGUMENTS_MAX]){ __VA_ARGS__ })
#define POINTER(p)	    ((uint64_t)(uintptr_t)(p))

/**
 * call_begin() - a record for a call that is written by hand
 * @size:	bytes of its body
 */
CUresult call_begin(unsigned call, size_t size, struct guest_lane **ret_lane, void **ret_body);

/** call_post() - send it and go on. Return: what an earlier posted call left, or CUDA_SUCCESS. */
CUresult call_post(struct guest_lane *l);

/** call_ask() - send it and wait. Return: its result, or what an earlier one left. */
CUresult call_ask(struct guest_lane *l, const uint8_t **ret_data, size_t *ret_size);

/**
 * struct guest_buffer - host memory that an argument of kind BUFFER names
 *
 * call_words() takes a pointer to it in place of the memory's own address.
 *
 * @inlined:	where it travels in the record itself; else @where says which part of which grant it is
 */
struct guest_buffer {
	const void *inlined;
	struct wire_buffer where;
};

#endif

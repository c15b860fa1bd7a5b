/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command of the guest, executed. What is read here is a private copy: the guest cannot change it any more.
 */
#ifndef FORWARD_HOST_COMMAND_H
#define FORWARD_HOST_COMMAND_H

#include "forward/wire.h"

#include "src/cuda/cuda_abi.h"

#define REPLY_MAX (LANE_REPLY_SIZE - sizeof(struct wire_reply))

/**
 * struct command - a record and the room for its answer
 * @call:	enum call_id or enum wire_own
 * @body:	what follows the record's head; aligned for words
 * @size:	bytes of it
 * @reply:	REPLY_MAX bytes; aligned for words
 * @reply_size:	how many are used
 */
struct command {
	unsigned call;
	const uint8_t *body;
	size_t size;
	uint8_t *reply;
	size_t reply_size;
};

/** command_execute() - decode it, call the driver, encode what it wrote. Return: the call's result. */
CUresult command_execute(struct command *command);

/**
 * struct reader - goes through a command's body
 * @failed:	something was beyond its end; everything read since is 0 or NULL
 */
struct reader {
	const uint8_t *at;
	const uint8_t *end;
	bool failed;
};

/** command_reader() - at the beginning of its body */
struct reader command_reader(const struct command *command);

/** reader_word() - the next 8 bytes, 0 where they are not all there */
uint64_t reader_word(struct reader *reader);

/** reader_bytes() - the next piece, NULL where it is not all there */
const void *reader_bytes(struct reader *reader, size_t n);

/** reader_handle() - the next word's object. What is no name of that kind fails. */
uint64_t reader_handle(struct reader *reader, enum handle_kind kind);

/** reader_buffer() - memory in a grant that the next piece names; NULL where there is none */
void *reader_buffer(struct reader *reader, uint64_t *ret_size);

/** reply_bytes() - room for the next piece of the answer, zeroed; NULL where there is none */
void *reply_bytes(struct command *command, size_t n);

/* Commands with code of their own. */
CUresult hand_execute(struct command *command);

/* Calls that the table decodes, and whose words somebody looks at. */
CUresult hand_call(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX]);

#endif

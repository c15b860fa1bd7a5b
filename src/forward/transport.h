/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * What guest and host share: the memory that commands travel through, and the messages that set it up.
 *
 * Two carriers bring the same structures to both sides. Without a virtual machine the broker makes
 * memfds and hands them to the guest library over a unix socket; in a virtual machine the guest's
 * kernel allocates pages and names them to the broker over a virtqueue. Whatever carries it, a
 * command names buffers by the number of a grant, never an address of the host's or of guest-physical
 * memory: only the broker or the guest's kernel says which pages a grant is.
 *
 *	guest process                                        host
 *	  thread 1 -- lane 1 (ring, reply area) ----------- lane thread 1 --+
 *	  thread 2 -- lane 2 ------------------------------ lane thread 2 --+-- libcuda
 *	  all      -- session block (state, callbacks) ---- worker ---------+
 *	  all      -- heap (grant 0), further grants ------ mapped by the worker
 *
 * One process of the guest is one session, executed by one worker process. Each thread that calls
 * the driver has a lane of its own, because much of what the driver keeps is per thread.
 *
 * Every word below is written by one side only and read by the other: where the guest's processor
 * is emulated, a locked instruction on memory that the host writes too is not atomic. Positions are
 * byte counts since the lane began, 64 bits wide, so they never wrap. The host keeps its own copy
 * of how far it has come and believes `head` only where it is at most the ring's size ahead of it;
 * every record is copied out of the ring before it is looked at.
 *
 * This header is for user space and for the guest's kernel: it includes linux/types.h only.
 */
#ifndef FORWARD_TRANSPORT_H
#define FORWARD_TRANSPORT_H

#include <linux/types.h>

#define WIRE_MAGIC     0x6e6f4c7465446f43ULL
#define WIRE_HASH_SIZE 16

/*
 * A lane: one block of 256 KiB, in a virtual machine physically contiguous.
 *
 *	0        struct lane
 *	4 KiB    reply area: struct wire_reply and what the call wrote
 *	128 KiB  ring: records, each at a multiple of 64 bytes, none across the ring's end
 */
#define LANE_SIZE	  (256 << 10)
#define LANE_REPLY_OFFSET 4096
#define LANE_REPLY_SIZE	  ((128 << 10) - LANE_REPLY_OFFSET)
#define LANE_RING_OFFSET  (128 << 10)
#define LANE_RING_SIZE	  (128 << 10)
#define LANE_ALIGN	  64

/* The longest record: kernel parameters may be 32,764 bytes, and the rest of a launch is small. */
#define WIRE_RECORD_MAX (64 << 10)

enum lane_waits {
	LANE_SLEEPS = 1,
	LANE_YIELDS,
};

/**
 * struct lane - the first page of a lane
 * @head:	bytes that the guest has published
 * @waits:	LANE_SLEEPS: the guest's thread sleeps, or is about to: call it when `replied` or `tail` moves.
 *		It sets this, looks at both again, and only then sleeps. LANE_YIELDS: it leaves its CPU to the host's
 *		thread, which gives it back with the answer
 * @tail:	bytes that the host has taken out of the ring; what it has taken is free
 * @replied:	the number of the last record that was answered in the reply area
 * @executed:	records executed, answered or not. At every synchronisation the guest compares it
 *		with what it has sent
 * @n_errors:	posted records that failed; the guest reports each change at its next call
 * @error:	the result of the last such record
 * @error_call:	which call that was
 * @cpu:	on which CPU the host's thread has been seen last, from 1. 0: it is not told, or is none of the guest's
 * @sleeps:	odd while the host's thread sleeps, or is about to, and another number each time: ring the
 *		doorbell after publishing, once for each such number, for waking takes the host a while. The
 *		host sets this, looks at `head` again, and only then sleeps
 *
 * What the guest writes and what the host writes are in cache lines of their own, and `sleeps`,
 * which the guest reads whenever it publishes, is apart from the words that change with each record.
 */
struct lane {
	struct {
		__u64 head;
		__u32 waits;
		__u32 reserved[13];
	} guest;
	struct {
		__u64 tail;
		__u64 replied;
		__u64 executed;
		__u64 n_errors;
		__u32 error;
		__u32 error_call;
		__u32 cpu;
		__u32 reserved[5];
	} host;
	struct {
		__u32 sleeps;
		__u32 reserved[15];
	} bell;
};

/**
 * struct wire_record - the head of a command in a ring
 * @size:	bytes with this head and without the gap up to the next multiple of 64
 * @call:	enum call_id of src/cuda/calls.h, or one of enum wire_own below
 * @flags:	WIRE_F_*
 * @ticket:	the process's order. A record without flags has its own number, counted over all lanes from
 *		0, and is executed when all with smaller ones have been. One with a flag has the number of
 *		those that were given out before, waits for these and holds up nobody, because nothing can
 *		have happened after a call that has not returned
 * @number:	the lane's own count of records, from 1
 *
 * The call's arguments follow, 8 bytes each, then what it reads, each piece at a multiple of 8.
 */
struct wire_record {
	__u32 size;
	__u16 call;
	__u16 flags;
	__u64 ticket;
	__u64 number;
};

/*
 * The caller waits for the answer; or it waits, sooner or later, until the record is executed, and there is
 * no answer but a failure that is noted as of a posted one. Without either the record is posted.
 */
#define WIRE_F_REPLY   1
#define WIRE_F_AWAITED 2

/* Commands that are no call of the driver. */
enum wire_own {
	/* Fills the ring up to its end: the next record is at its beginning. */
	WIRE_PAD = 0xff00,
	/* What kind of address is it? One word; the answer is enum wire_address. */
	WIRE_CLASSIFY,
	/* A kernel's parameters: the function's handle; the answer is struct wire_parameters. */
	WIRE_PARAMETERS,
	/* What NVML tells: a struct wire_question of question.h; the answer is a struct wire_answer. */
	WIRE_NVML,
	/* Memory in a grant becomes what devices reach: a struct wire_buffer, flags of cuMemHostRegister(). */
	WIRE_PIN,
	WIRE_UNPIN,
	/* One word: how many host functions the guest has run. Its ticket is 0: it waits for nothing. */
	WIRE_CALLBACK_DONE,
	/*
	 * A managed variable of a module: its address and how many bytes, at most WIRE_MANAGED_MAX; the answer has
	 * them. To write it, what the guest had and what it has follow: bytes that are the same in both stay.
	 */
	WIRE_READ_MANAGED,
	WIRE_WRITE_MANAGED,
	/* A part of what a linker made: its name, from where in it, and a struct wire_buffer. */
	WIRE_LINK_IMAGE,
};

#define WIRE_MANAGED_MAX (16 << 10)

/**
 * struct wire_reply - the head of the reply area
 * @number:	of the record that this answers
 * @result:	CUresult
 * @size:	bytes that follow: what the call wrote, in the order of its arguments, each piece at a
 *		multiple of 8. Where @result is an error there is nothing, but for the texts of a compiler
 */
struct wire_reply {
	__u64 number;
	__u32 result;
	__u32 size;
};

/**
 * struct wire_buffer - host memory that a command reads or writes
 * @grant:	whose number; 0 is the session's heap. WIRE_BY_ADDRESS: memory that goes on from one grant
 *		to the next, all of which the worker has at the guest's addresses; @offset is the first
 */
#define WIRE_BY_ADDRESS 0xffffffffU

struct wire_buffer {
	__u32 grant;
	__u32 reserved;
	__u64 offset;
	__u64 size;
};

/*
 * The session's block, 64 KiB: its state, and a ring of host functions that the guest is to run.
 * A function is asked for at entry `asked` % N_CALLBACKS and is over when `done` is beyond it; the
 * host waits for that before what the stream has behind it.
 */
#define SESSION_SIZE		 (64 << 10)
#define SESSION_CALLBACKS_OFFSET 4096
#define SESSION_N_CALLBACKS	 ((SESSION_SIZE - SESSION_CALLBACKS_OFFSET) / 64)

/**
 * struct session_block - the first page of it
 * @done:	host functions that the guest has run
 * @waits:	the guest's service thread sleeps: call it when `asked` moves
 * @asked:	host functions that the host has asked for
 * @issued:	posted records that were executed, over all lanes
 * @lost:	the worker or the broker is gone, or about to end this session: nothing will be answered
 */
struct session_block {
	struct {
		__u64 done;
		__u32 waits;
		__u32 reserved[13];
	} guest;
	struct {
		__u64 asked;
		__u64 issued;
		__u32 lost;
		__u32 reserved[11];
	} host;
};

/**
 * struct wire_callback - a host function that is due
 * @kind:	enum wire_callback_kind: which of the forms @function has
 * @status:	the stream's result, for those that are told it
 * @function:	as the guest gave it
 * @data:	likewise
 * @stream:	the guest's handle, for those that are told it
 */
struct wire_callback {
	__u32 kind;
	__u32 status;
	__u64 function;
	__u64 data;
	__u64 stream;
	__u64 reserved[4];
};

enum wire_callback_kind {
	WIRE_HOST_FUNCTION,
	WIRE_STREAM_CALLBACK,
};

/*
 * Setting up: messages of one size, each answered by one of the same type. Over a unix socket
 * (SOCK_SEQPACKET) what is made comes along as descriptors, in the order given below; over the control
 * virtqueue the guest's kernel has made it, and a list of struct wire_piece follows the message.
 * The broker passes them on to the session's worker in the form of the socket. Memory of a virtual machine
 * it has no descriptor for, because that would be all of it: the broker has it mapped where the worker has
 * reserved addresses, and says where in `at`. Of a session that is block and heap, one behind the other.
 */
enum wire_message_type {
	/* Versions; the first message on a connection, or of a driver. Opens no session. */
	WIRE_HELLO = 1,
	/* A process begins. Descriptors: session block, heap, event that calls the service thread. */
	WIRE_SESSION_OPEN,
	/* It ends, by itself or because it died. The answer comes when its worker is gone. */
	WIRE_SESSION_CLOSE,
	/*
	 * A thread's lane. Descriptors: lane, what wakes the host, event that calls the guest. On a unix socket
	 * that is a pipe, both ends: the kernel takes who writes to one for about to sleep, and wakes the reader on
	 * the same CPU, while an idle one may take long to wake.
	 */
	WIRE_LANE_ADD,
	/* A worker answers when the lane's thread has emptied the ring and unmapped it. */
	WIRE_LANE_REMOVE,
	/* Memory that the host may use. Descriptor: the memory, to be mapped at `address`. */
	WIRE_GRANT,
	/* The answer comes when nobody on the host reaches it any more; only then may pages be freed. */
	WIRE_REVOKE,
	/* From a worker: a token for an IPC handle, or the handle of a token. Within one broker only. */
	WIRE_IPC_PUT,
	WIRE_IPC_GET,
	/* To a worker: `size` bytes of addresses, at `address` where that is free. The answer has them in `at`. */
	WIRE_RESERVE,
	/*
	 * From a worker: `id` is enum question of question.h, `address` its `which`, `data` begins with the device's
	 * UUID. In the answer `size` is nvmlReturn_t, and `data` what the call has written.
	 */
	WIRE_DEVICE,
};

/**
 * struct wire_message - a request or its answer
 * @type:	enum wire_message_type
 * @error:	in an answer: 0 or a negative errno
 * @session:	which session; 0 on a unix socket, where a connection is one
 * @id:		of the lane or grant; chosen by the broker, in a virtual machine by the guest's kernel. In
 *		WIRE_SESSION_OPEN likewise said by them: the process, as the guest numbers it; 0: not known
 * @address:	a grant: where the guest has it mapped
 * @size:	bytes of it
 * @n_pieces:	struct wire_piece that follow, in a virtual machine; 0 on a unix socket
 * @magic:	WIRE_MAGIC, in WIRE_HELLO; in a virtual machine in WIRE_SESSION_OPEN, likewise the hash
 * @hash:	of the protocol; sides of different hashes refuse each other
 * @at:		to a worker: where it has the memory; 0: it comes as a descriptor
 */
struct wire_message {
	__u32 type;
	__s32 error;
	__u32 session;
	__u32 id;
	__u64 address;
	__u64 size;
	__u32 n_pieces;
	__u32 reserved;
	union {
		struct {
			__u64 magic;
			__u8 hash[WIRE_HASH_SIZE];
		};
		__u64 at;
		__u8 data[64];
	};
};

/**
 * struct wire_piece - contiguous memory that a lane, a session's block or a grant is made of
 * @address:	guest-physical, as only the guest's kernel says it
 */
struct wire_piece {
	__u64 address;
	__u64 size;
};

/* What one session may have, and one broker. The broker refuses more with -EDQUOT. */
#define WIRE_HEAP_SIZE	  (16ULL << 20)
#define WIRE_MAX_LANES	  256
#define WIRE_MAX_GRANTS	  4096
#define WIRE_MAX_SESSIONS 256
#define WIRE_MAX_GRANT	  (1ULL << 40)

#endif

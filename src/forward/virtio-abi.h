/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/*
 * Between a guest's kernel and the host: the queues of the virtio device, and what travels in them.
 * Below that, between the guest's libcuda.so.1 and its kernel: the ioctls of /dev/cotenant0.
 *
 * The device is QEMU's own vhost-user-fs-pci (virtio id 26), told from a file system by its tag:
 *
 *	-chardev socket,id=cotenant,path=SOCKET
 *	-device vhost-user-fs-pci,chardev=cotenant,tag=cotenant,num-request-queues=2,queue-size=1024,page-per-vq=on
 *	-object memory-backend-memfd,id=ram,size=SIZE,share=on -machine memory-backend=ram
 *
 * It has no feature bits of its own, so what both sides can do is said in the first message. All numbers
 * are little-endian and structures have no holes; the device is used on x86-64 only. VIRTIO_F_VERSION_1 is
 * required; INDIRECT_DESC and EVENT_IDX may be used; ACCESS_PLATFORM is refused by the driver, because
 * addresses in messages are guest-physical.
 *
 * Queue 0, control. A request is one chain: what the device reads is a struct wire_message and then
 * `n_pieces` struct wire_piece, what it writes one struct wire_message, the answer. How the bytes are cut
 * into descriptors says nothing. Answers come in any order. Of one session one request is under way at a
 * time (a second is answered -EBUSY), but for WIRE_SESSION_CLOSE, which may come at any moment and has any
 * pending request of that session answered (-ENODEV will do) before itself. Several sessions are served at
 * once. An answer repeats `type`, `session` and `id`; `error` is 0 or the negative of one of Linux's
 * x86-64 error numbers.
 *
 * Numbers are chosen by the guest's kernel: sessions from 1, lanes from 0, grants from 1 (grant 0 is the
 * heap), all below the caps. One is free again when the answer to WIRE_SESSION_CLOSE, WIRE_LANE_REMOVE or
 * WIRE_REVOKE is there, or an error to what would have begun it; what is refused leaves nothing behind.
 *
 * Pieces have addresses and sizes that are multiples of 4096, none is of size 0, and in their order they
 * add up to what they are: `size` of a grant, LANE_SIZE, SESSION_SIZE + WIRE_HEAP_SIZE. They need not be
 * sorted, and two grants may have the same pages. They lie in guest memory that is pinned and stays so until
 * the host has answered the message that ends them: that answer is the promise that no process of the
 * host reaches them any more, by mapping, by the device's DMA or otherwise.
 *
 *	WIRE_HELLO		The driver's first message. struct cotenant_hello in `data`, there and back; one piece
 *				of 4096 bytes, struct cotenant_beat. A second one ends all sessions before its
 *				answer comes. -EPROTO: the versions differ, and the answer says the host's
 *	WIRE_SESSION_OPEN	`magic`, and `hash` of the guest's library; `size` is WIRE_HEAP_SIZE; `id` is the process's
 *				number, 0 where the driver does not say it. Pieces: the
 *				session's block, then the heap; no piece is of both. -EPROTO: the answer has the
 *				host's hash. -EDQUOT: too many sessions
 *	WIRE_SESSION_CLOSE	Answered when the worker is gone; never with an error, but -ENOENT where there is
 *				no such session
 *	WIRE_LANE_ADD		`id`. Pieces: the lane
 *	WIRE_LANE_REMOVE	`id`. Answered when the lane's thread has let go of it
 *	WIRE_GRANT		`id`, `address`, `size`, pieces. -EDQUOT: over a cap
 *	WIRE_REVOKE		`id`
 *
 * When a worker dies the host ends its session by COTENANT_EVENT_LOST; what is asked of it from then on is
 * answered -ENODEV, but for WIRE_SESSION_CLOSE, which the guest owes it in any case.
 *
 * Queue 1, the doorbell. A notification without buffers comes from a process that has its page mapped and
 * means: some lane of this machine was published to. The host looks at `bell.sleeps` of every lane and
 * wakes those where it is odd. With buffers: each is a struct cotenant_doorbell, read by the device and
 * handed back with length 0, and means that lane only. Where COTENANT_F_USER_DOORBELL is agreed upon the host
 * has to look at all lanes at each notification, with buffers or without, because two may have become one.
 *
 * Queue 2, events. The guest keeps buffers of one struct cotenant_event there, COTENANT_N_EVENTS of them. The
 * host fills one for each call of a lane or a service thread. Where there is none it remembers, once for
 * each lane, and fills one when there is. Events of sessions that the guest does not know are ignored.
 *
 * Further queues are not used.
 *
 * The host is gone when `beat` does not change: it adds 1 each COTENANT_BEAT_MS while it is there. The guest
 * looks as often, and after COTENANT_BEATS_MISSED looks without a change every call answers that the device
 * is lost, for good. Memory that was shared then stays allocated: nobody can say that it is not in use.
 *
 * A reset of the device (QEMU's GET_VRING_BASE) ends all sessions. The host answers QEMU only when all
 * workers are gone, so after the reset the guest's pages are its own.
 */
#ifndef FORWARD_VIRTIO_ABI_H
#define FORWARD_VIRTIO_ABI_H

#include "transport.h"

#include <linux/ioctl.h>
#include <linux/types.h>

#define COTENANT_VIRTIO_ID  26
#define COTENANT_TAG	    "cotenant"
#define COTENANT_TAG_OFFSET 0
#define COTENANT_TAG_SIZE   36

/*
 * Of this header: the queues and the ioctls. What workers and libraries say to each other has a hash of its
 * own, so a kernel module need not be exchanged with them.
 */
#define COTENANT_ABI_VERSION 1

enum cotenant_queue {
	COTENANT_QUEUE_CONTROL,
	COTENANT_QUEUE_DOORBELL,
	COTENANT_QUEUE_EVENTS,
	COTENANT_N_QUEUES,
};

/* Caps of this format. The host says lower ones in its answer to WIRE_HELLO. */
#define COTENANT_MAX_PIECES 8192

#define COTENANT_N_EVENTS     256
#define COTENANT_BEAT_MS      250
#define COTENANT_BEATS_MISSED 6

/* The driver maps the doorbell's page into processes. */
#define COTENANT_F_USER_DOORBELL (1ULL << 0)

/**
 * struct cotenant_hello - in `data` of WIRE_HELLO
 * @magic:	WIRE_MAGIC
 * @version:	COTENANT_ABI_VERSION
 * @features:	COTENANT_F_*: what the driver will use; in the answer those that the host agrees to
 * @max_sessions: in the answer, as all that follow: sessions have numbers below it, at most WIRE_MAX_SESSIONS
 * @max_lanes:	of one session, likewise at most WIRE_MAX_LANES
 * @max_grants: of one session, likewise at most WIRE_MAX_GRANTS
 * @max_pieces:	of one message, at most COTENANT_MAX_PIECES; enough for SESSION_SIZE + WIRE_HEAP_SIZE in pages
 */
struct cotenant_hello {
	__u64 magic;
	__u32 version;
	__u32 reserved;
	__u64 features;
	__u32 max_sessions;
	__u32 max_lanes;
	__u32 max_grants;
	__u32 max_pieces;
	__u64 unused[3];
};

/** struct cotenant_beat - a page that the host writes and the guest's kernel reads */
struct cotenant_beat {
	__u64 beat;
};

/**
 * struct cotenant_doorbell - a submission that went through the guest's kernel
 * @number:	how many there were, over all lanes, with this one
 */
struct cotenant_doorbell {
	__u32 session;
	__u32 lane;
	__u64 number;
};

/**
 * struct cotenant_event - the host calls
 * @lane:	whose thread is to look, or one of the numbers below
 */
struct cotenant_event {
	__u32 session;
	__u32 lane;
};

/* The service thread is to look at `asked`. */
#define COTENANT_EVENT_SERVICE 0xffffffffU
/* The session's worker is gone. The host has set `lost` in its block. */
#define COTENANT_EVENT_LOST 0xfffffffeU

/*
 * /dev/cotenant0. An open file is one session, which belongs to the process that opened it: another gets
 * -EPERM, and it ends when that process closes the file or ends. All ioctls answer -ENODEV when the host or
 * the session is gone, -ENOTCONN before COTENANT_IOC_OPEN, -EINTR where a signal came.
 *
 * Memory is the process's own: the kernel pins what the addresses name. Addresses and sizes are multiples
 * of 4096. What is pinned stays so when the process unmaps it.
 */

/**
 * struct cotenant_ioc_open - begin the session
 * @version:	COTENANT_ABI_VERSION; the answer has the kernel's. -EPROTO where they differ
 * @flags:	in the answer: COTENANT_OPEN_*
 * @hash:	of the library's protocol; the answer has the host's. -EPROTO where they differ
 * @block:	SESSION_SIZE bytes
 * @heap:	WIRE_HEAP_SIZE bytes
 */
struct cotenant_ioc_open {
	__u32 version;
	__u32 flags;
	__u8 hash[WIRE_HASH_SIZE];
	__u64 block;
	__u64 heap;
};

/*
 * The doorbell can be mapped: 4096 bytes of the file at offset 0, shared. A store of COTENANT_DOORBELL_VALUE, 16 bits
 * at its beginning, rings. Where it is not set each submission has to be told by COTENANT_IOC_RING.
 */
#define COTENANT_OPEN_DOORBELL	(1U << 0)
#define COTENANT_DOORBELL_VALUE COTENANT_QUEUE_DOORBELL

/** struct cotenant_ioc_lane - LANE_SIZE bytes at @address become lane @id */
struct cotenant_ioc_lane {
	__u64 address;
	__u32 id;
	__u32 reserved;
};

/**
 * struct cotenant_ioc_grant - @size bytes at @address become grant @id
 *
 * -E2BIG: it has more pieces than a message may name; two grants of half of it may do.
 */
struct cotenant_ioc_grant {
	__u64 address;
	__u64 size;
	__u32 id;
	__u32 reserved;
};

/**
 * struct cotenant_ioc_wait - sleep until the host calls
 * @lane:	a lane's number or COTENANT_EVENT_SERVICE. A call that came before counts, once
 * @timeout_ms:	-1: without end. -ETIMEDOUT after it
 */
struct cotenant_ioc_wait {
	__u32 lane;
	__s32 timeout_ms;
};

#define COTENANT_IOC_OPEN	 _IOWR(0xc7, 0, struct cotenant_ioc_open)
#define COTENANT_IOC_LANE_ADD	 _IOWR(0xc7, 1, struct cotenant_ioc_lane)
#define COTENANT_IOC_LANE_REMOVE _IOW(0xc7, 2, __u32)
#define COTENANT_IOC_GRANT	 _IOWR(0xc7, 3, struct cotenant_ioc_grant)
#define COTENANT_IOC_REVOKE	 _IOW(0xc7, 4, __u32)
#define COTENANT_IOC_RING	 _IOW(0xc7, 5, __u32)
#define COTENANT_IOC_WAIT	 _IOW(0xc7, 6, struct cotenant_ioc_wait)

#endif

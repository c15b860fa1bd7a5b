/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a device, as all processes map it.
 *
 * Everything in it is changed by single atomic steps that leave it whole; there is no lock
 * whose holder could die or be stopped, but for setting limits (file.c). Who may write what:
 *
 *	slot		its owner; the kernel marks `life`; `used` also by those who
 *			complete a charge that its owner has entered in `charge`
 *	client		its owner; `served` by whoever advances the line of turns
 *	the rest	anybody
 *
 * A process of another user may write anything into it, so nothing that is read from here
 * is used as an index without a bound, and nothing as an address.
 */
#ifndef SOFTGPU_STATE_LAYOUT_H
#define SOFTGPU_STATE_LAYOUT_H

#include "softgpu/state/pair.h"
#include "softgpu/state/state.h"

#include <linux/futex.h>
#include <stdatomic.h>

#define STATE_MAGIC	      "SOFTGPU"
#define STATE_VERSION	      2
#define STATE_CGROUPS_MAX     16 /* ancestors of a process that are looked at */
#define STATE_SAMPLES_PROCESS 16 /* periods that are remembered */
#define STATE_SAMPLES_DEVICE  128
#define STATE_PATH_MAX	      512
#define STATE_BYTES_BITS      48 /* of a process's use; the rest of the word is never set */

/* A period's number in the upper half and its busy nanoseconds in the lower. */
typedef _Atomic uint64_t state_bucket;

/*
 * A process on the books of the device.
 * @life:	thread id of the process's keeper in its own pid namespace; the kernel replaces
 *		it by FUTEX_OWNER_DIED when that thread ends
 * @birth:	number of this life of the slot, never used twice; 0 while it is not filled in.
 *		The low 10 bits are the slot's index.
 * @used:	a: number of the last charge that is in it; b: bytes
 * @host_pid:	low half of @birth, and the pid in the first namespace; of no meaning if the
 *		former does not match
 * @busy_past_ns:	device time of clients that ended
 * @cgroups:	inode numbers of the process's cgroup and its ancestors, then zeros
 */
struct state_slot {
	_Atomic uint32_t life;
	_Atomic uint32_t local_pid;
	_Atomic uint64_t birth;
	struct pair used;
	_Atomic uint64_t host_pid;
	_Atomic uint64_t pid_namespace;
	_Atomic uint64_t busy_past_ns;
	_Atomic int32_t n_contexts;
	_Atomic uint64_t cgroups[STATE_CGROUPS_MAX];
	state_bucket samples[STATE_SAMPLES_PROCESS];
} __attribute__((aligned(64)));

/*
 * A context in the line of turns.
 * @owner:	birth of its process's slot; 0: free
 * @filled:	equal to @owner once the rest is that owner's
 * @served:	a: end of the last turn; b: device time of all turns
 * @want:	up to where @served.b has been asked for
 * @ready_ns:	when what is asked for could begin
 * @keeps_turn:	more will be asked for at once: a turn is given whole
 * @first:	@served.b when it was claimed
 */
struct state_client {
	_Atomic uint64_t owner;
	_Atomic uint64_t filled;
	struct pair served;
	_Atomic uint64_t want;
	_Atomic uint64_t ready_ns;
	_Atomic uint32_t keeps_turn;
	_Atomic uint64_t first;
} __attribute__((aligned(64)));

struct state_limit_entry {
	_Atomic uint64_t soft_bytes;
	_Atomic uint64_t hard_bytes;
	char path[STATE_PATH_MAX];
};

/*
 * @generation:	@n_properties of the file when they hold
 * @sum:	of all before it
 */
struct state_properties {
	struct softgpu_device_config device;
	uint32_t n_devices;
	uint32_t generation;
	uint64_t slice_ns;
	uint64_t sample_period_ns;
	uint64_t sum;
};

/*
 * @boot_id:	of the kernel that the file was made under: an older one is stale
 * @wall_offset_ns:	wall clock minus CLOCK_MONOTONIC when it was made. Times of samples are
 *		told with it, so that the same sample has the same time whenever it is read.
 * @sum:	of all before it, which never changes
 * @pid_namespace:	the first one: whose numbers are the host's
 * @n_slots:	no slot at or above it was ever used
 * @n_properties:	the low bit tells which of the two holds
 * @charge:	a: number; b: slot (16 bits) and bytes (48) of the last charge. It may not
 *		be in the slot's sum yet; whoever wants to enter the next has to see to that.
 * @fault:	a: how many kernels have failed; b: Xid (32 bits) and slot of the last
 * @turn:	a: end; b: length in ns (44 bits), client (20). The last turn that was given.
 */
struct state_file {
	char magic[8];
	uint32_t version;
	uint32_t index;
	uint64_t size_bytes;
	uint8_t boot_id[16];
	uint64_t wall_offset_ns;
	uint64_t sum;
	_Atomic uint64_t pid_namespace;
	_Atomic uint32_t n_slots;
	_Atomic uint32_t n_clients;
	_Atomic uint32_t n_limits;
	_Atomic uint32_t n_properties;
	struct state_properties properties[2];

	struct pair charge __attribute__((aligned(64)));
	struct pair fault;
	struct pair turn __attribute__((aligned(64)));
	_Atomic uint64_t busy_ns;
	state_bucket samples[STATE_SAMPLES_DEVICE];

	_Atomic uint64_t limit_cgroups[STATE_LIMITS_MAX]; /* inode numbers; 0: free */
	struct state_limit_entry limits[STATE_LIMITS_MAX];
	struct state_slot slots[STATE_SLOTS_MAX];
	struct state_client clients[STATE_CLIENTS_MAX];
};

static inline bool life_is_dead(uint32_t life)
{
	return life == 0 || (life & FUTEX_OWNER_DIED);
}

static inline bool slot_is_live(const struct state_slot *slot)
{
	return !life_is_dead(atomic_load(&slot->life));
}

static inline uint32_t state_bounded(const _Atomic uint32_t *n, uint32_t max)
{
	uint32_t now = atomic_load(n);

	return now < max ? now : max;
}

/* Raises *@n to at least @to. */
static inline void state_raise(_Atomic uint32_t *n, uint32_t to)
{
	uint32_t now = atomic_load(n);

	while (now < to && !atomic_compare_exchange_weak(n, &now, to))
		;
}

static inline const struct state_properties *file_properties(const struct state_file *file)
{
	return &file->properties[atomic_load(&file->n_properties) & 1];
}

/* They were checked when the file was opened, but others can write to it since. */
static inline uint64_t file_slice_ns(const struct state_file *file)
{
	uint64_t ns = file_properties(file)->slice_ns;

	return ns < 1000 ? 1000 : ns;
}

static inline uint64_t file_period_ns(const struct state_file *file)
{
	uint64_t ns = file_properties(file)->sample_period_ns;

	return ns < 1000000 ? 1000000 : ns;
}

#endif

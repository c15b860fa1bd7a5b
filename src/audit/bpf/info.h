/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process is told of the devices' memory: what its tenant has, and what is left of that.
 */
#ifndef AUDIT_BPF_INFO_H
#define AUDIT_BPF_INFO_H

#include "context.h"

/* The smallest memory.max around the process, LEDGER_NO_LIMIT if it has none. */
static noinline __u64 info_total(struct thread *t)
{
	struct audit_process *p = PROCESS(t->process);
	__u64 total = LEDGER_NO_LIMIT;

	for (__u32 i = 0; i < LEDGER_DEPTH; i++) {
		__u64 max;

		if (i >= p->chain.n)
			break;
		max = READ_ONCE(books[ledger_index(p->chain.tenants[i], t->call_device)].max);
		if (max < total)
			total = max;
	}
	return total;
}

static inlined __u64 lesser(__u64 a, __u64 b)
{
	return a < b ? a : b;
}

/* Bytes that the device would still give to the process, where the driver says @driver_free. */
static noinline __u64 info_device_left(struct thread *t, __u64 driver_free)
{
	const struct ledger *whole = &books[ledger_index(WHOLE_DEVICE, t->call_device)];
	__u64 total = READ_ONCE(DEVICE(t->call_device)->total), max = READ_ONCE(whole->max);
	__u64 reserve = max < total ? total - max : 0;

	if (!charge_is_bounded(&PROCESS(t->process)->chain, t->call_device))
		return driver_free;
	return lesser(driver_free > reserve ? driver_free - reserve : 0, ledger_left(whole));
}

/* Total and free bytes to show, where the driver says *free: free in t->scratch[6], total in [7]. */
static noinline int info_values(struct thread *t, __u64 driver_free)
{
	__u64 left = ledger_chain_left(books, &PROCESS(t->process)->chain, t->call_device);

	t->scratch[7] = info_total(t);
	t->scratch[6] = lesser(left, info_device_left(t, driver_free));
	for (int i = 0; i < 2 * AUDIT_WRITES; i++)
		t->scratch[i] = 0;
	return t->scratch[7] != LEDGER_NO_LIMIT;
}

static inlined void info_write(struct thread *t, __u32 i, __u64 address, __u64 value)
{
	t->scratch[i] = address;
	t->scratch[AUDIT_WRITES + i] = value;
}

static inlined __u64 narrowed(const struct row *row, __u64 value)
{
	return row->flags & ROW_NARROW && value > 0xffffffff ? 0xffffffff : value;
}

static noinline int info_memory(struct thread *t, const struct row *row)
{
	__u64 free_at = ARGUMENT(t, row->a), total_at = ARGUMENT(t, row->b);
	__u64 driver_free = free_at ? user_read(free_at, width_of(row)) : LEDGER_NO_LIMIT;

	if (!info_values(t, driver_free))
		return 0;
	info_write(t, 0, free_at, narrowed(row, t->scratch[6]));
	info_write(t, 1, total_at, narrowed(row, t->scratch[7]));
	return write_results(t, width_of(row));
}

static noinline int info_device_total(struct thread *t, const struct row *row)
{
	t->call_device = process_device_of(t->process, ARGUMENT(t, row->b));
	if (!info_values(t, LEDGER_NO_LIMIT))
		return 0;
	info_write(t, 0, ARGUMENT(t, row->a), narrowed(row, t->scratch[7]));
	return write_results(t, width_of(row));
}

/* Total, free and used of an NVML structure, whose fields stand at these places. */
static noinline int info_nvml(struct thread *t, const struct row *row)
{
	__u32 free_at = row->action == ROW_NVML_MEMORY ? 8 : 24;
	__u32 used_at = row->action == ROW_NVML_MEMORY ? 16 : 32;
	struct object *o = object_find(t, OBJECT_NVML, ARGUMENT(t, row->a));
	__u64 at = ARGUMENT(t, row->b);

	if (!o && READ_ONCE(control.n_devices) > 1)
		return 0;
	t->call_device = o ? o->device : 0;
	if (!at || !info_values(t, user_read(at + free_at, 8)))
		return 0;
	info_write(t, 0, row->action == ROW_NVML_MEMORY ? at : at + 8, t->scratch[7]);
	info_write(t, 1, at + free_at, t->scratch[6]);
	info_write(t, 2, at + used_at,
		   t->scratch[7] > t->scratch[6] ? t->scratch[7] - t->scratch[6] : 0);
	return write_results(t, 8);
}

static noinline int nvml_device_by_index(__u32 index)
{
	for (__u32 i = 0; i < LEDGER_DEVICES; i++)
		if (devices[i].in_use && devices[i].nvml_index == index)
			return i;
	return AUDIT_NO_DEVICE;
}

static noinline int device_is_called(const struct audit_device *device, __u64 name)
{
	for (__u32 i = 0; i < AUDIT_DEVICE_NAMES; i++)
		if (device->names[i] == name)
			return device->in_use;
	return 0;
}

/* By UUID, place on the bus or serial number, as the text at @address says. */
alone int nvml_device_by_name(struct thread *t, __u64 address)
{
	__u64 name;

	if (!t)
		return AUDIT_NO_DEVICE;
	t->scratch[0] = 0;
	bpf_probe_read_user_str(t->scratch, AUDIT_DEVICE_NAME_SIZE, (void *)address);
	name = audit_name_hash((const char *)t->scratch);
	for (__u32 i = 0; i < LEDGER_DEVICES; i++)
		if (device_is_called(&devices[i], name))
			return i;
	return AUDIT_NO_DEVICE;
}

static noinline int nvml_handle(struct thread *t, const struct row *row)
{
	__u64 what = ARGUMENT(t, row->a), handle = ARGUMENT(t, row->b);
	__u32 device = row->action == ROW_NVML_HANDLE ? nvml_device_by_index(what)
						      : nvml_device_by_name(t, what);

	if (device == AUDIT_NO_DEVICE)
		return 0;
	if (row->action != ROW_NVML_NAME)
		handle = user_read(handle, 8);
	t->call_device = device;
	return object_new(t, OBJECT_NVML, handle, 0) != 0;
}

alone int leave_info(struct thread *t)
{
	const struct row *row;

	if (!t)
		return 0;
	row = ROW_AT(t->row);
	switch (row->action) {
	case ROW_INFO_MEMORY:
		return info_memory(t, row);
	case ROW_INFO_TOTAL:
		return info_device_total(t, row);
	case ROW_NVML_HANDLE:
	case ROW_NVML_HANDLE_BY_NAME:
	case ROW_NVML_NAME:
		return nvml_handle(t, row);
	default:
		return info_nvml(t, row);
	}
}

#endif

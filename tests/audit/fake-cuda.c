// SPDX-License-Identifier: Apache-2.0
/*
 * A libcuda that does nothing: every call of rows.def exists, counts its executions, and answers what the
 * test has told it to. Where a call hands out a handle, it is the next number.
 *
 * Built twice: with entries that begin with endbr64, as compilers emit them today, and with entries that
 * begin with a push, as older drivers have them. The kernel executes the one out of line and emulates the
 * other, and a thread that is stopped behind it looks different.
 */
#include "audit/rows.h"
#include "fake-cuda.h"

struct fake fake = { .next_handle = 0x7000000000 };

static const struct row rows[ROW_COUNT] = {
#include "audit/rows.def"
};

/* Where a call writes a handle, or -1. */
static int handle_argument(const struct row *row)
{
	switch (row->action) {
	case ROW_PHYSICAL_RETAIN:
	case ROW_POOL_CREATE:
	case ROW_POOL_DEFAULT:
	case ROW_CONTEXT_ATTACH:
		return row->a;
	case ROW_GRAPH_CLONE:
	case ROW_CAPTURE_END:
	case ROW_NVML_HANDLE:
	case ROW_NVML_HANDLE_BY_NAME:
	case ROW_GREEN_CONTEXT:
		return row->b;
	default:
		return row->action <= ROW_GRAPH_INSTANTIATE ? row->b : -1;
	}
}

long fake_call(unsigned number, unsigned long *arguments)
{
	const struct row *row = &rows[number];
	int at = handle_argument(row);

	__atomic_add_fetch(&fake.executions[number], 1, __ATOMIC_RELAXED);
	if (fake.inside)
		fake.inside();
	if (fake.code)
		return fake.code;
	if (row->action == ROW_ALLOCATE_PITCH)
		*(unsigned long *)arguments[row->a] = fake.pitch;
	if (row->action == ROW_INFO_MEMORY || row->action == ROW_INFO_TOTAL) {
		if (arguments[row->a])
			*(unsigned long *)arguments[row->a] = fake.free_bytes;
		if (row->action == ROW_INFO_MEMORY && arguments[row->b])
			*(unsigned long *)arguments[row->b] = fake.total_bytes;
	}
	if (row->action == ROW_DEVICE_UUID)
		for (int i = 0; i < 16; i++)
			((unsigned char *)arguments[row->a])[i] = fake.uuid[i];
	if (at >= 0 && arguments[at])
		*(unsigned long *)arguments[at] =
			fake.handle
				? fake.handle
				: __atomic_fetch_add(&fake.next_handle, 0x1000, __ATOMIC_RELAXED);
	return 0;
}

#ifdef FAKE_PUSH
#define FAKE_ENTRY "push %rbx\n"
#define FAKE_LEAVE "pop %rbx\n"
#else
#define FAKE_ENTRY "endbr64\n sub $8, %rsp\n"
#define FAKE_LEAVE "add $8, %rsp\n"
#endif

/* Six arguments go to an array on the stack; beyond it the stack is as at a call. */
#define FAKE_EXPORT(name, number)                                                                  \
	__asm__(".globl " #name "\n .type " #name ", @function\n .p2align 4\n" #name               \
		":\n" FAKE_ENTRY "sub $48, %rsp\n"                                                 \
		"mov %rdi, 0(%rsp)\n mov %rsi, 8(%rsp)\n mov %rdx, 16(%rsp)\n"                     \
		"mov %rcx, 24(%rsp)\n mov %r8, 32(%rsp)\n mov %r9, 40(%rsp)\n"                     \
		"mov $" #number ", %edi\n mov %rsp, %rsi\n call fake_call@PLT\n"                   \
		"add $48, %rsp\n" FAKE_LEAVE "ret\n .size " #name ", . - " #name "\n");

#include "fake-exports.h"

/* What a driver of tomorrow may have: no row knows it. */
long cuMemConjure(void);
long cuMemConjure(void)
{
	return 0;
}

// SPDX-License-Identifier: Apache-2.0
/* What the host's side believes of a guest: names of objects, tokens, memory in grants. */
#include "forward/host/handle.h"
#include "forward/host/memory.h"
#include "forward/host/token.h"

#include "base/base.h"
#include "base/check.h"
#include "forward/host/driver.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

/* A driver that knows one allocation. */
CUresult driver_call(enum call_id id, const uint64_t w[CALL_N_ARGUMENTS_MAX])
{
	if (id != CALL_ID_cuPointerGetAttribute || w[2] < 0x100000 || w[2] >= 0x200000)
		return CUDA_ERROR_INVALID_VALUE;
	*(uint64_t *)w[0] = 0x100000;
	return CUDA_SUCCESS;
}

static void test_handles(void)
{
	uint64_t stream = handle_put(HANDLE_STREAM, 0x1234), object, again;

	check(handle_get(HANDLE_STREAM, stream, &object) == 0 && object == 0x1234,
	      "handle: leads to its object");
	check(handle_put(HANDLE_STREAM, 0x1234) == stream, "handle: an object has one name");
	check(handle_get(HANDLE_EVENT, stream, &object) == -ENOENT,
	      "handle: no name of another kind");
	check(handle_get(HANDLE_STREAM, stream + 1, &object) == -ENOENT, "handle: no made up name");
	check(handle_get(HANDLE_STREAM, 2, &object) == 0 && object == 2,
	      "handle: the thread's own stream");
	check(handle_get(HANDLE_STREAM, 3, &object) == -ENOENT, "handle: no number is an object");
	check(handle_get(HANDLE_CONTEXT, 0, &object) == 0 && object == 0,
	      "handle: NULL stays NULL");
	handle_drop(stream);
	check(handle_get(HANDLE_STREAM, stream, &object) == -ENOENT, "handle: not after its end");
	again = handle_put(HANDLE_STREAM, 0x5678);
	check(again != stream && (uint32_t)again == (uint32_t)stream,
	      "handle: its place has a new generation");
	handle_drop(stream);
	check(handle_get(HANDLE_STREAM, again, &object) == 0,
	      "handle: an old name ends no new object");
	check(handle_get(HANDLE_FUNCTION, handle_put(HANDLE_KERNEL, 0x42), &object) == 0 &&
		      object == 0x42,
	      "handle: a kernel is taken for a function");
}

static void test_local_handles(void)
{
	uint64_t name = (uint64_t)HANDLE_EVENT << 56 | 1ULL << 32 | HANDLE_LOCAL | 7, object;

	check(handle_get(HANDLE_EVENT, name, &object) == -ENOENT,
	      "handle: the guest's, before the host knows it");
	check(handle_put_local(HANDLE_EVENT, name, 0x99) == 0 &&
		      handle_get(HANDLE_EVENT, name, &object) == 0 && object == 0x99,
	      "handle: the guest's own");
	check(handle_put_local(HANDLE_STREAM, name, 0x99) == -EINVAL,
	      "handle: of another kind than it says");
	check(handle_put_local(HANDLE_EVENT, name & ~(uint64_t)HANDLE_LOCAL, 0x99) == -EINVAL,
	      "handle: none of those that the host makes");
	handle_drop(name);
	check(handle_get(HANDLE_EVENT, name, &object) == -ENOENT,
	      "handle: the guest's, after its end");
}

static void test_grants(void)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct wire_buffer buffer = { .grant = 1, .size = PAGE };
	const uint64_t address = 0x300000000000;
	uint8_t *reserved;
	char *at;

	check(fd >= 0 && ftruncate(fd, 4 * PAGE) == 0 && pwrite(fd, "first", 6, 0) == 6,
	      "grant: memory");
	check(grant_add(1, fd, address, 2 * PAGE) == 0, "grant: of two pages");
	at = grant_find(&buffer);
	check(at == (char *)address && strcmp(at, "first") == 0,
	      "grant: its memory, at the guest's address");
	reserved = memory_reserve(address, PAGE);
	check(reserved && reserved != (uint8_t *)address,
	      "grant: elsewhere where an address is taken");
	check(grant_add_at(1, reserved, 0, PAGE) == -EEXIST &&
		      grant_add_at(3, reserved, 0, PAGE) == 0,
	      "grant: of memory that is there already");
	check(grant_remove(3) == 0, "grant: that ends, too");
	buffer.offset = PAGE + 1;
	check(!grant_find(&buffer), "grant: nothing beyond its end");
	buffer.offset = UINT64_MAX;
	check(!grant_find(&buffer), "grant: no offset that wraps");
	check(grant_add(1, fd, 0, PAGE) == -EEXIST, "grant: a number once");
	check(grant_add(2, fd, address + 2 * PAGE, PAGE) == 0, "grant: the next one");
	buffer = (struct wire_buffer){ WIRE_BY_ADDRESS, 0, address + PAGE, 2 * PAGE };
	check(grant_find(&buffer) == (void *)(address + PAGE),
	      "grant: by address, from one to the next");
	buffer.size = 3 * PAGE;
	check(!grant_find(&buffer), "grant: by address, not beyond them");
	check(pin_begin((void *)(address + PAGE), 2 * PAGE) == 0,
	      "pin: from one grant to the next");
	check(pin_begin((void *)(address + PAGE), 3 * PAGE) == -ENOENT, "pin: not beyond them");
	check(grant_remove(1) == -EBUSY && grant_remove(2) == -EBUSY,
	      "pin: neither grant ends before it");
	pin_end((void *)(address + PAGE));
	check(grant_remove(2) == 0 && grant_remove(2) == -ENOENT, "grant: ends once");
	close(fd);
}

static void test_ranges(void)
{
	check(range_ok(0x180000, 0x80000), "range: within an allocation");
	check(!range_ok(0x180000, 0x80001), "range: one byte too far");
	check(!range_ok(0x50000, 1), "range: an address of nobody");
	check(!range_ok(UINT64_MAX, 2), "range: one that wraps");
	range_add(0x200000, 0x1000);
	check(range_ok(0x1ff000, 0x2000), "range: on into what was reserved behind it");
	range_remove(0x200000);
	check(!range_ok(0x200000, 1), "range: not after its end");
}

static void test_tokens(void)
{
	struct wire_message put = { .type = WIRE_IPC_PUT, .id = 1, .data = "handle" }, get;

	token_serve(&put);
	check(put.error == 0 && strcmp((char *)put.data, "handle") != 0,
	      "token: is not the handle");
	get = put;
	get.type = WIRE_IPC_GET;
	token_serve(&get);
	check(get.error == 0 && strcmp((char *)get.data, "handle") == 0,
	      "token: leads to the handle");
	get = put;
	get.type = WIRE_IPC_GET;
	get.id = 2;
	token_serve(&get);
	check(get.error == -ENOENT, "token: of its kind only");
	get = put;
	get.type = WIRE_IPC_GET;
	get.data[0] ^= 1;
	token_serve(&get);
	check(get.error == -ENOENT, "token: none that is made up");
}

int main(void)
{
	if (!check(handle_init() == 0, "handle: the table"))
		return check_result();
	test_handles();
	test_local_handles();
	test_grants();
	test_ranges();
	test_tokens();
	return check_result();
}

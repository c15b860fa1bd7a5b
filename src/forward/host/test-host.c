// SPDX-License-Identifier: Apache-2.0
/* What the host's side believes of a guest: names of objects, tokens, memory in grants, textures, variables. */
#include "forward/host/handle.h"
#include "forward/host/memory.h"
#include "forward/host/texture.h"
#include "forward/host/token.h"
#include "forward/host/variable.h"

#include "base/base.h"
#include "base/check.h"
#include "forward/host/driver.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

#define TEXTURE 0x77

/* The texture's, as it came to the driver. */
static CUDA_RESOURCE_DESC resource_seen;
static unsigned n_destroyed;

/* A variable in the allocation, and whether the driver says of addresses that they are managed. */
#define VARIABLE      0x100100
#define VARIABLE_SIZE 16

static bool says_managed;

/* No command is executed here, but for what the tests call themselves. */
CUresult hand_execute(_unused_ struct command *command)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult hand_call(_unused_ enum call_id id, _unused_ const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* A driver that knows one allocation, and makes one texture. */
CUresult driver_call(enum call_id id, const uint64_t w[CALL_N_ARGUMENTS_MAX])
{
	switch (id) {
	case CALL_ID_cuPointerGetAttribute:
		if (w[2] < 0x100000 || w[2] >= 0x200000)
			return CUDA_ERROR_INVALID_VALUE;
		*(uint64_t *)w[0] =
			w[1] == CU_POINTER_ATTRIBUTE_IS_MANAGED ? says_managed : 0x100000;
		return CUDA_SUCCESS;
	case CALL_ID_cuLibraryGetManaged:
		*(uint64_t *)w[0] = VARIABLE;
		*(uint64_t *)w[1] = VARIABLE_SIZE;
		return CUDA_SUCCESS;
	case CALL_ID_cuLibraryUnload:
		return CUDA_SUCCESS;
	case CALL_ID_cuTexObjectCreate:
		*(uint64_t *)w[0] = TEXTURE;
		resource_seen = *(const CUDA_RESOURCE_DESC *)w[1];
		return CUDA_SUCCESS;
	case CALL_ID_cuTexObjectGetResourceDesc:
		*(CUDA_RESOURCE_DESC *)w[0] = resource_seen;
		return CUDA_SUCCESS;
	case CALL_ID_cuTexObjectDestroy:
		n_destroyed++;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
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
	check(grant_address((char *)at + 3) == address + 3 && !grant_address((char *)at + 2 * PAGE),
	      "grant: an address here is one of the guest's");
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

#define TEXTURE_CALL(function, name, ...)                                                          \
	function(CALL_ID_##name, (const uint64_t[CALL_N_ARGUMENTS_MAX]){ __VA_ARGS__ })

/* The driver's answer to a texture of it. */
static CUresult create(CUDA_RESOURCE_DESC resource, uint64_t *ret)
{
	return TEXTURE_CALL(texture_create, cuTexObjectCreate, POINTER(ret), POINTER(&resource));
}

static void test_texture_memory(void)
{
	CUDA_RESOURCE_DESC linear = { .resType = CU_RESOURCE_TYPE_LINEAR }, pitched;
	uint64_t texture;

	linear.res.linear.devPtr = 0x180000;
	linear.res.linear.sizeInBytes = 0x80000;
	check(create(linear, &texture) == CUDA_SUCCESS, "texture: of an allocation");
	linear.res.linear.sizeInBytes++;
	check(create(linear, &texture) == CUDA_ERROR_INVALID_VALUE, "texture: not beyond it");

	/* 0x80000 bytes are 511 rows of 0x400 and one of 256 elements of 4 bytes. */
	pitched = (CUDA_RESOURCE_DESC){ .resType = CU_RESOURCE_TYPE_PITCH2D };
	pitched.res.pitch2D.devPtr = 0x180000;
	pitched.res.pitch2D.format = CU_AD_FORMAT_FLOAT;
	pitched.res.pitch2D.numChannels = 1;
	pitched.res.pitch2D.width = 256;
	pitched.res.pitch2D.height = 512;
	pitched.res.pitch2D.pitchInBytes = 0x400;
	check(create(pitched, &texture) == CUDA_SUCCESS, "texture: of rows");
	pitched.res.pitch2D.devPtr += 0x200;
	check(create(pitched, &texture) == CUDA_ERROR_INVALID_VALUE, "texture: no row beyond");
	pitched.res.pitch2D.width = 128;
	check(create(pitched, &texture) == CUDA_SUCCESS, "texture: whose last row is short");
	pitched.res.pitch2D.height = SIZE_MAX;
	pitched.res.pitch2D.pitchInBytes = SIZE_MAX;
	check(create(pitched, &texture) == CUDA_ERROR_INVALID_VALUE, "texture: no rows that wrap");
	pitched.res.pitch2D.height = 0;
	check(create(pitched, &texture) == CUDA_ERROR_INVALID_VALUE, "texture: not of no rows");
}

static void test_texture_objects(void)
{
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_ARRAY }, back;
	uint64_t array = handle_put(HANDLE_ARRAY, 0x4321), texture = 0;

	resource.res.array.hArray = (CUarray)array;
	check(create(resource, &texture) == CUDA_SUCCESS && texture == TEXTURE,
	      "texture: has the driver's own number");
	check(POINTER(resource_seen.res.array.hArray) == 0x4321, "texture: of the array of a name");
	check(TEXTURE_CALL(texture_describe, cuTexObjectGetResourceDesc, POINTER(&back), TEXTURE) ==
			      CUDA_SUCCESS &&
		      POINTER(back.res.array.hArray) == array,
	      "texture: tells the array by its name");
	check(TEXTURE_CALL(texture_describe, cuTexObjectGetResourceDesc, POINTER(&back),
			   TEXTURE + 1) == CUDA_ERROR_INVALID_VALUE,
	      "texture: no number that is made up");
	check(TEXTURE_CALL(texture_destroy, cuSurfObjectDestroy, TEXTURE) ==
		      CUDA_ERROR_INVALID_VALUE,
	      "texture: is no surface");
	n_destroyed = 0;
	check(TEXTURE_CALL(texture_destroy, cuTexObjectDestroy, TEXTURE) == CUDA_SUCCESS &&
		      TEXTURE_CALL(texture_destroy, cuTexObjectDestroy, TEXTURE) ==
			      CUDA_ERROR_INVALID_VALUE &&
		      n_destroyed == 1,
	      "texture: ends once");
	resource.res.array.hArray = (CUarray)(array + 1);
	check(create(resource, &texture) == CUDA_ERROR_INVALID_VALUE,
	      "texture: not of an array that is made up");
	resource.resType = (CUresourcetype)17;
	check(create(resource, &texture) == CUDA_ERROR_INVALID_VALUE,
	      "texture: not of what nobody knows");
}

static CUresult variable_ask(CUresult (*execute)(struct command *command), uint64_t address,
			     uint64_t size, const char *before, const char *now, void *ret)
{
	static uint64_t body[8], reply[REPLY_MAX / sizeof(uint64_t)];
	struct command command = { .body = (uint8_t *)body, .reply = (uint8_t *)reply };
	CUresult r;

	body[0] = address;
	body[1] = size;
	command.size = 2 * sizeof(body[0]);
	if (now) {
		memcpy(&body[2], before, VARIABLE_SIZE);
		memcpy(&body[4], now, VARIABLE_SIZE);
		command.size += 2 * VARIABLE_SIZE;
	}
	r = execute(&command);
	if (r == CUDA_SUCCESS && ret)
		memcpy(ret, reply, size);
	return r;
}

static void variable_call(CUresult (*call)(enum call_id, const uint64_t *), enum call_id id,
			  uint64_t library)
{
	uint64_t address, size;
	const uint64_t looked_up[CALL_N_ARGUMENTS_MAX] = { POINTER(&address), POINTER(&size),
							   library };
	const uint64_t unloaded[CALL_N_ARGUMENTS_MAX] = { library };

	call(id, id == CALL_ID_cuLibraryUnload ? unloaded : looked_up);
}

static void test_variables(void)
{
	char *there = mmap((void *)0x100000, PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	char back[PAGE];

	if (!check(there == (void *)0x100000, "variable: memory of the device's"))
		return;
	check(variable_ask(variable_read, VARIABLE, 1, NULL, NULL, NULL) ==
		      CUDA_ERROR_INVALID_VALUE,
	      "variable: what is the device's alone is not read");
	variable_call(variable_look_up, CALL_ID_cuLibraryGetManaged, 7);
	strcpy((char *)VARIABLE, "fifteen letters");
	check(variable_ask(variable_read, VARIABLE, VARIABLE_SIZE, NULL, NULL, back) ==
			      CUDA_SUCCESS &&
		      strcmp(back, "fifteen letters") == 0,
	      "variable: is read where it was found");
	check(variable_ask(variable_read, VARIABLE, VARIABLE_SIZE + 1, NULL, NULL, NULL) ==
			      CUDA_ERROR_INVALID_VALUE &&
		      variable_ask(variable_read, VARIABLE - 1, 1, NULL, NULL, NULL) ==
			      CUDA_ERROR_INVALID_VALUE &&
		      variable_ask(variable_read, VARIABLE + 1, UINT64_MAX, NULL, NULL, NULL) ==
			      CUDA_ERROR_INVALID_VALUE,
	      "variable: nothing beside it is");
	check(variable_ask(variable_write, VARIABLE, VARIABLE_SIZE, "FIFTEEN LETTERS",
			   "FIFTY-N LETTERS", NULL) == CUDA_SUCCESS &&
		      strcmp((char *)VARIABLE, "fiftY-n letters") == 0,
	      "variable: only what the guest changed is written");
	check(variable_ask(variable_write, VARIABLE, VARIABLE_SIZE, NULL, NULL, NULL) ==
		      CUDA_ERROR_INVALID_VALUE,
	      "variable: not without the bytes");
	variable_call(variable_unload, CALL_ID_cuLibraryUnload, 8);
	check(variable_ask(variable_read, VARIABLE, 1, NULL, NULL, back) == CUDA_SUCCESS,
	      "variable: outlives another library");
	variable_call(variable_unload, CALL_ID_cuLibraryUnload, 7);
	check(variable_ask(variable_read, VARIABLE, 1, NULL, NULL, back) ==
		      CUDA_ERROR_INVALID_VALUE,
	      "variable: ends with its library");
	says_managed = true;
	check(variable_ask(variable_read, 0x100000, 16, NULL, NULL, back) == CUDA_SUCCESS &&
		      variable_ask(variable_read, 0x1ffff8, 16, NULL, NULL, back) ==
			      CUDA_ERROR_INVALID_VALUE,
	      "variable: managed as the driver says, and not beyond");
	munmap(there, PAGE);
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
	test_texture_memory();
	test_texture_objects();
	test_variables();
	test_tokens();
	return check_result();
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The driver maps managed memory into this process, so its processor reads and writes it as the guest's would.
 *
 * What is managed the driver tells of an address, and by a call that finds managed variables only. Those found so are
 * kept here: not every driver says the same of their addresses.
 */
#include "forward/host/variable.h"

#include "base/base.h"

#include "forward/host/driver.h"
#include "forward/host/memory.h"

#include <pthread.h>
#include <string.h>

#define MAX_VARIABLES 4096

struct variable {
	uint64_t library;
	uint64_t address;
	uint64_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct variable variables[MAX_VARIABLES];
static size_t n_variables;

/* The caller has the lock. */
static bool is_found(uint64_t address, uint64_t size)
{
	size_t i;

	for (i = 0; i < n_variables; i++)
		if (address >= variables[i].address && size <= variables[i].size &&
		    address - variables[i].address <= variables[i].size - size)
			return true;
	return false;
}

CUresult variable_look_up(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	const uint64_t *address = (const uint64_t *)words[0], *size = (const uint64_t *)words[1];
	CUresult r;

	if (!address || !size)
		return CUDA_ERROR_INVALID_VALUE;
	r = driver_call(id, words);
	if (r != CUDA_SUCCESS)
		return r;
	pthread_mutex_lock(&lock);
	if (!is_found(*address, *size)) {
		if (n_variables < MAX_VARIABLES)
			variables[n_variables++] = (struct variable){ words[2], *address, *size };
		else
			r = CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_mutex_unlock(&lock);
	return r;
}

CUresult variable_unload(enum call_id id, const uint64_t words[CALL_N_ARGUMENTS_MAX])
{
	size_t i;

	pthread_mutex_lock(&lock);
	for (i = n_variables; i > 0; i--)
		if (variables[i - 1].library == words[0])
			variables[i - 1] = variables[--n_variables];
	pthread_mutex_unlock(&lock);
	return driver_call(id, words);
}

/* Those of a context that was reset are found no more by the driver. */
static bool is_managed(uint64_t address, uint64_t size)
{
	bool found;

	pthread_mutex_lock(&lock);
	found = is_found(address, size);
	pthread_mutex_unlock(&lock);
	return found ? range_ok(address, size) : range_is_managed(address, size);
}

/* Address and size, both at the body's beginning. */
static uint8_t *managed_take(struct reader *reader, size_t *ret_size)
{
	uint64_t address = reader_word(reader), size = reader_word(reader);

	if (reader->failed || size > WIRE_MANAGED_MAX || !is_managed(address, size))
		return NULL;
	*ret_size = size;
	return (uint8_t *)(uintptr_t)address;
}

CUresult variable_read(struct command *command)
{
	struct reader reader = command_reader(command);
	size_t size;
	const uint8_t *from = managed_take(&reader, &size);
	uint8_t *to = from ? reply_bytes(command, size) : NULL;

	if (!to)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, from, size);
	return CUDA_SUCCESS;
}

/* What the guest had before, and what it has now: devices may have written what it did not. */
CUresult variable_write(struct command *command)
{
	struct reader reader = command_reader(command);
	const uint8_t *before, *now;
	size_t i, size;
	uint8_t *to = managed_take(&reader, &size);

	if (!to)
		return CUDA_ERROR_INVALID_VALUE;
	before = reader_bytes(&reader, size);
	now = reader_bytes(&reader, size);
	if (!before || !now)
		return CUDA_ERROR_INVALID_VALUE;
	for (i = 0; i < size; i++)
		if (now[i] != before[i])
			to[i] = now[i];
	return CUDA_SUCCESS;
}

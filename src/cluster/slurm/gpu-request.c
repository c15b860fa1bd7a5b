/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/slurm/gpu-request.h"

#include "base/quantity.h"
#include "base/str.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

/* Longer than any size that there is; the copy is cut at the colon. */
#define MAX_SIZE_TEXT 64

static int refuse(char reason[GPU_REQUEST_REASON], const char *fmt, ...) PRINTF(2, 3);

static int refuse(char reason[GPU_REQUEST_REASON], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, GPU_REQUEST_REASON, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* "4096" is MiB; anything with a unit is what it says. */
static int parse_size(const char *text, uint64_t *ret_bytes)
{
	uint64_t number;

	if (str_parse_u64(text, &number) == 0) {
		if (number > INT64_MAX / MIB)
			return -ERANGE;
		*ret_bytes = number * MIB;
		return 0;
	}
	return size_parse(text, ret_bytes);
}

static int read_size(const char *text, const char *what, uint64_t *ret_bytes,
		     char reason[GPU_REQUEST_REASON])
{
	int r = parse_size(text, ret_bytes);

	if (r == -ERANGE)
		return refuse(reason, "%s: '%.40s' is more than any device has", what, text);
	if (r < 0 || *ret_bytes == QUANTITY_MAX)
		return refuse(reason, "%s: '%.40s' is not a size such as 4096 (MiB), 4G or 512M",
			      what, text);
	if (*ret_bytes == 0)
		return refuse(reason, "%s: nothing is asked for", what);
	return 0;
}

int gpu_request_memory(const char *text, struct gpu_request *request,
		       char reason[GPU_REQUEST_REASON])
{
	size_t len = strcspn(text, ":");
	uint64_t low, max = 0;
	char first[MAX_SIZE_TEXT];
	const char *rest;
	int r;

	if (len >= sizeof(first))
		return refuse(reason, "'%.40s...' is not a size", text);
	memcpy(first, text, len);
	first[len] = '\0';
	r = read_size(first, "the request", &low, reason);
	if (r < 0)
		return r;
	if (text[len]) {
		rest = str_after(text + len, ":max=");
		if (!rest)
			return refuse(reason,
				      "behind the request only ':max=SIZE' may stand, not '%.40s'",
				      text + len);
		r = read_size(rest, "max", &max, reason);
		if (r < 0)
			return r;
		if (max < low)
			return refuse(reason, "max is less than the request");
	}
	request->low_mib = low / MIB + (low % MIB != 0);
	/* The request may have been rounded up past it. */
	request->max_bytes = max ? MAX(max, request->low_mib * MIB) : 0;
	return 0;
}

int gpu_request_compute(const char *text, struct gpu_request *request,
			char reason[GPU_REQUEST_REASON])
{
	uint32_t permille;

	if (percent_parse(text, &permille) < 0 || permille == 0)
		return refuse(reason,
			      "'%.40s' is not a part of the device's time such as 30 or 12.5%%",
			      text);
	request->compute_permille = permille;
	return 0;
}

int gpu_request_policy(const char *text, struct gpu_request *request,
		       char reason[GPU_REQUEST_REASON])
{
	if (ladder_parse(text, &request->policy) < 0)
		return refuse(reason,
			      "'%.40s' is not warn, suspend, evict or kill, nor from one to "
			      "another as in suspend-evict",
			      text);
	request->has_policy = true;
	return 0;
}

static const char compute_note[] = "cotenant-compute:";

void gpu_request_note_compute(uint32_t permille, char ret[COMPUTE_NOTE_SIZE])
{
	snprintf(ret, COMPUTE_NOTE_SIZE, "%s%" PRIu32, compute_note, permille);
}

uint32_t gpu_request_noted_compute(const char *note)
{
	const char *digits = note ? str_after(note, compute_note) : NULL;
	uint64_t permille;

	if (!digits || str_parse_u64(digits, &permille) < 0 || permille > 1000)
		return 0;
	return permille;
}

// SPDX-License-Identifier: Apache-2.0
/* The tables that wire.h declares. */
#include "forward/wire.h"

#include "src/cuda/cuda_abi.h"
#include "wire-hash.h"

#include <stdio.h>

const uint8_t wire_hash[WIRE_HASH_SIZE] = WIRE_HASH;

const struct wire_call wire_calls[CALL_N] = {
#include "wire-table.inc"
};

void wire_hash_text(const uint8_t hash[WIRE_HASH_SIZE], char *ret)
{
	size_t i;

	for (i = 0; i < WIRE_HASH_SIZE; i++)
		sprintf(ret + 2 * i, "%02x", hash[i]);
}

const char *wire_call_name(unsigned call)
{
	switch (call) {
	case WIRE_PAD:
		return "pad";
	case WIRE_CLASSIFY:
		return "classify";
	case WIRE_PARAMETERS:
		return "parameters";
	case WIRE_NVML:
		return "NVML";
	case WIRE_PIN:
		return "pin";
	case WIRE_UNPIN:
		return "unpin";
	case WIRE_CALLBACK_DONE:
		return "callback done";
	case WIRE_READ_MANAGED:
		return "read managed";
	case WIRE_WRITE_MANAGED:
		return "write managed";
	case WIRE_LINK_IMAGE:
		return "link image";
	default:
		return call < CALL_N ? calls[call].name : "?";
	}
}

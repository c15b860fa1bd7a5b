// SPDX-License-Identifier: Apache-2.0
#include "forward/host/token.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

#define TOKEN_SIZE  16
#define MAX_TOKENS  4096
#define HANDLE_SIZE sizeof(((struct wire_message *)NULL)->data)

struct token {
	uint32_t kind; /* 0: none */
	uint8_t name[TOKEN_SIZE];
	uint8_t handle[HANDLE_SIZE];
};

static struct token tokens[MAX_TOKENS];
static size_t next;

/* The same handle has the same token: a program may ask for it again and again. */
static struct token *find_handle(uint32_t kind, const uint8_t *handle)
{
	size_t i;

	for (i = 0; i < MAX_TOKENS; i++)
		if (tokens[i].kind == kind && memcmp(tokens[i].handle, handle, HANDLE_SIZE) == 0)
			return &tokens[i];
	return NULL;
}

static int put(struct wire_message *message)
{
	struct token *token = find_handle(message->id, message->data);

	if (!token) {
		token = &tokens[next++ % MAX_TOKENS];
		if (getrandom(token->name, TOKEN_SIZE, 0) != TOKEN_SIZE)
			return -EIO;
		token->kind = message->id;
		memcpy(token->handle, message->data, HANDLE_SIZE);
	}
	memset(message->data, 0, sizeof(message->data));
	memcpy(message->data, token->name, TOKEN_SIZE);
	return 0;
}

static int get(struct wire_message *message)
{
	size_t i;

	for (i = 0; i < MAX_TOKENS; i++) {
		if (tokens[i].kind != message->id ||
		    memcmp(tokens[i].name, message->data, TOKEN_SIZE) != 0)
			continue;
		memcpy(message->data, tokens[i].handle, HANDLE_SIZE);
		return 0;
	}
	return -ENOENT;
}

void token_serve(struct wire_message *message)
{
	if (message->id == 0)
		message->error = -EINVAL;
	else
		message->error = message->type == WIRE_IPC_PUT ? put(message) : get(message);
}

// SPDX-License-Identifier: Apache-2.0
/*
 * The driver counts references, and calls the destructor with the last of them: then the name ends, too, and the
 * guest runs its own.
 */
#include "forward/host/user-object.h"

#include "base/base.h"
#include "forward/host/callback.h"
#include "forward/host/driver.h"
#include "forward/host/handle.h"

struct user_object {
	uint64_t object;
	struct callback *destroy;
};

static void user_object_free(struct user_object *user)
{
	if (!user)
		return;
	free(user->destroy);
	free(user);
}

static void user_object_end(void *arg)
{
	struct user_object *user = arg;

	handle_drop(handle_find(HANDLE_USER_OBJECT, user->object));
	callback_run(user->destroy);
	user_object_free(user);
}

CUresult user_object_create(struct command *command)
{
	struct reader reader = command_reader(command);
	const uint64_t *words = reader_bytes(&reader, 4 * sizeof(*words));
	uint64_t *name = reply_bytes(command, sizeof(*name));
	struct user_object *user;
	CUuserObject object = NULL;
	CUresult r = CUDA_ERROR_OUT_OF_MEMORY;

	if (!words || !name)
		return CUDA_ERROR_INVALID_VALUE;
	user = calloc(1, sizeof(*user));
	if (user)
		user->destroy = callback_new(words[0], words[1]);
	if (user && user->destroy)
		r = DRIVER(cuUserObjectCreate, POINTER(&object), POINTER(user),
			   POINTER(user_object_end), words[2], words[3]);
	if (r != CUDA_SUCCESS) {
		user_object_free(user);
		return r;
	}
	user->object = POINTER(object);
	*name = handle_put(HANDLE_USER_OBJECT, POINTER(object));
	return CUDA_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/seal.h"

#include "base/str.h"

#include <errno.h>
#include <munge.h>

/* A message is opened as it arrives; what is older than this has been kept by somebody. */
#define OPENED_WITHIN_S 30

static munge_ctx_t context(const char *socket)
{
	munge_ctx_t ctx = munge_ctx_create();

	if (ctx && socket && munge_ctx_set(ctx, MUNGE_OPT_SOCKET, socket) != EMUNGE_SUCCESS) {
		munge_ctx_destroy(ctx);
		return NULL;
	}
	return ctx;
}

int seal_close(const char *socket, uid_t reader, const char *text, char **ret,
	       char reason[REPORT_REASON])
{
	munge_ctx_t ctx = context(socket);
	munge_err_t error;

	if (!ctx)
		return -ENOMEM;
	munge_ctx_set(ctx, MUNGE_OPT_TTL, OPENED_WITHIN_S);
	munge_ctx_set(ctx, MUNGE_OPT_UID_RESTRICTION, reader);
	error = munge_encode(ret, ctx, text, (int)strlen(text));
	if (error != EMUNGE_SUCCESS)
		snprintf(reason, REPORT_REASON, "%s", munge_ctx_strerror(ctx));
	munge_ctx_destroy(ctx);
	return error == EMUNGE_SUCCESS ? 0 : -EIO;
}

int seal_open(const char *socket, const char *credential, char **ret, uid_t *ret_uid,
	      char reason[REPORT_REASON])
{
	munge_ctx_t ctx = context(socket);
	void *payload = NULL;
	munge_err_t error;
	int len = 0, r = 0;
	gid_t gid;

	if (!ctx)
		return -ENOMEM;
	error = munge_decode(credential, ctx, &payload, &len, ret_uid, &gid);
	if (error != EMUNGE_SUCCESS) {
		snprintf(reason, REPORT_REASON, "%s", munge_ctx_strerror(ctx));
		r = -EACCES;
	} else {
		*ret = strndup(payload ? payload : "", len);
		r = *ret ? 0 : -ENOMEM;
	}
	free(payload);
	munge_ctx_destroy(ctx);
	return r;
}

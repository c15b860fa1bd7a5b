/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/node/tell.h"

#include "cluster/channel.h"
#include "cluster/node/collect.h"
#include "cluster/seal.h"

#include "base/str.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>

#define WITHIN_MS    5000
#define ANSWER_BYTES (64 * 1024)

static int failed(char reason[TELL_REASON], const char *fmt, ...) PRINTF(2, 3);

static int failed(char reason[TELL_REASON], const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(reason, TELL_REASON, fmt, ap);
	va_end(ap);
	return -EIO;
}

static int make_report(const struct tell_options *o, uint64_t until_ms, const char *nonce,
		       char **ret_sealed, char reason[TELL_REASON])
{
	_cleanup_(report_done) struct report report = {};
	char why[REPORT_REASON] = "no memory";
	_cleanup_free_ char *text = NULL;

	if (!str_copy(report.node, sizeof(report.node), o->node) ||
	    !str_copy(report.nonce, sizeof(report.nonce), nonce))
		return failed(reason, "the controller says what is no nonce");
	if (collect_ask(o->socket, until_ms, &report, why) < 0)
		return failed(reason, "%s", why);
	text = report_print(&report);
	if (!text || seal_close(o->munge_socket, o->controller_uid, text, ret_sealed, why) < 0)
		return failed(reason, "MUNGE: %s", why);
	return 0;
}

static int read_answer(const struct tell_options *o, const char *nonce, const char *sealed,
		       char reason[TELL_REASON])
{
	_cleanup_free_ char *text = NULL;
	char why[REPORT_REASON] = "no memory";
	const char *said, *refused;
	json_t *json;
	uid_t uid;
	int r = 0;

	if (seal_open(o->munge_socket, sealed, &text, &uid, why) < 0)
		return failed(reason, "MUNGE: %s", why);
	if (uid != o->controller_uid)
		return failed(reason, "user %u answers, who is not the controller", uid);
	json = json_loads(text, 0, NULL);
	said = json_string_value(json_object_get(json, "nonce"));
	refused = json_string_value(json_object_get(json, "refused"));
	if (!said || !str_eq(said, nonce)) {
		r = failed(reason, "the answer is to another report");
	} else if (refused) {
		failed(reason, "%s", refused);
		r = -EACCES;
	}
	json_decref(json);
	return r;
}

int tell_controller(const struct tell_options *o, char reason[TELL_REASON])
{
	_cleanup_free_ char *nonce = NULL, *sealed = NULL, *answer = NULL;
	uint64_t until_ms = channel_now_ms() + WITHIN_MS;
	_cleanup_close_ int fd = channel_connect(o->controller, until_ms);
	int r;

	if (fd < 0)
		return failed(reason, "cannot reach the controller: %s", strerror(-fd));
	r = channel_read(fd, ANSWER_BYTES, until_ms, &nonce);
	if (r < 0)
		return failed(reason, "the controller asks nothing: %s", strerror(-r));
	r = make_report(o, until_ms, nonce, &sealed, reason);
	if (r < 0)
		return r;
	r = channel_write(fd, sealed, until_ms);
	if (r == 0)
		r = channel_read(fd, ANSWER_BYTES, until_ms, &answer);
	if (r < 0)
		return failed(reason, "the controller does not answer: %s", strerror(-r));
	channel_wait_end(fd, until_ms);
	return read_answer(o, nonce, answer, reason);
}

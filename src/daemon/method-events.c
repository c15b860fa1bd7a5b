/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events.*: what happened, and waiting for what happens next.
 */
#include "daemon/daemon.h"

#include "base/log.h"

#include <errno.h>

#define MAX_WAIT_MS	    60000
#define MAX_WAITERS	    256
#define MAX_WAITERS_OF_USER 32
#define DEFAULT_MANY	    100
#define MOST		    10000
#define MOST_OF_USER	    1000

/*
 * A call that waits for an event.
 * @seen:	no event up to this number is for it: only later ones are looked at
 */
struct waiter {
	struct waiter *next;
	struct api_call *call;
	uint64_t seen;
	uint64_t until_us;
};

static struct event_filter filter_of(const json_t *args, uid_t uid)
{
	return (struct event_filter){
		.after = api_arg_uint(args, "after", 0),
		.tenant = api_arg_string(args, "tenant"),
		.uid = uid,
		.limit = MIN(api_arg_uint(args, "limit", DEFAULT_MANY),
			     (uint64_t)(uid ? MOST_OF_USER : MOST)),
	};
}

/*
 * @seen:	as in struct waiter
 * Return: whether the call is answered.
 */
static bool answer(struct daemon *d, struct api_call *call, uint64_t seen, bool even_empty)
{
	struct event_filter filter = filter_of(api_call_args(call), api_call_peer(call)->uid);
	struct api_error error;
	json_t *list;

	filter.after = MAX(filter.after, seen);
	if (event_log_list(d->events, &filter, &list) < 0) {
		api_fail(&error, API_E_FAULT, "the events cannot be read");
		api_call_refuse(call, &error);
		return true;
	}
	if (json_array_size(list) == 0 && !even_empty) {
		json_decref(list);
		return false;
	}
	api_call_reply(call, json_pack("{s:o}", "events", list));
	return true;
}

/* Is there room for one more of this user? Nobody can take the places of all others. */
static bool may_wait(const struct daemon *d, uid_t uid)
{
	const struct waiter *w;
	unsigned n = 0, n_of_user = 0;

	for (w = d->waiters; w; w = w->next) {
		n++;
		n_of_user += api_call_peer(w->call)->uid == uid;
	}
	return n < MAX_WAITERS && (uid == 0 || n_of_user < MAX_WAITERS_OF_USER);
}

/* What the engine tells of calls that ended before the question is part of the answer. */
void method_events_list(struct daemon *d, struct api_call *call)
{
	const char *text = api_arg_string(api_call_args(call), "wait");
	struct api_error error;
	uint64_t wait_ms = 0;
	struct waiter *w;
	int r;

	if (text && duration_parse(text, &wait_ms) < 0) {
		api_fail(&error, API_E_BAD_REQUEST, "wait: '%.60s' is not a time such as 30s",
			 text);
		api_call_refuse(call, &error);
		return;
	}
	r = d->engine ? engine_dispatch(d->engine) : 0;
	if (r < 0)
		log_warn(r, "the engine");
	if (answer(d, call, /* seen= */ 0, wait_ms == 0))
		return;
	w = may_wait(d, api_call_peer(call)->uid) ? calloc(1, sizeof(*w)) : NULL;
	if (!w) {
		api_fail(&error, API_E_CONFLICT, "too many calls wait for events already");
		api_hint(&error, "at most %d of one user may", MAX_WAITERS_OF_USER);
		api_call_refuse(call, &error);
		return;
	}
	w->call = call;
	w->seen = event_log_last(d->events);
	w->until_us = daemon_now_us() + MIN(wait_ms, (uint64_t)MAX_WAIT_MS) * 1000;
	w->next = d->waiters;
	d->waiters = w;
}

void daemon_answer_waiters(struct daemon *d, bool all)
{
	uint64_t now = daemon_now_us(), last = event_log_last(d->events);
	struct waiter **p = &d->waiters, *w;
	bool over;

	while ((w = *p)) {
		over = all || now >= w->until_us;
		if ((w->seen == last && !over) || !answer(d, w->call, w->seen, over)) {
			w->seen = last;
			p = &w->next;
			continue;
		}
		*p = w->next;
		free(w);
	}
}

int method_events_explain(struct daemon *d, const struct request *q, json_t **ret)
{
	uint64_t id = api_arg_uint(q->args, "event", 0);
	const struct tenant *t;
	const char *name;
	json_t *event;

	if (event_log_get(d->events, id, q->peer.uid, &event) < 0) {
		api_fail(q->error, API_E_NOT_FOUND, "there is no event %llu%s",
			 (unsigned long long)id, q->peer.uid ? " of yours" : "");
		return api_hint(q->error, "`cotenant events` shows them with their numbers");
	}
	name = json_string_value(json_object_get(event, "tenant"));
	t = name ? tenants_find(&d->tenants, name) : NULL;
	if (t && tenant_is_visible(t, q->peer.uid))
		json_object_set_new(event, "now", tenant_json_alone(d, t));
	*ret = event;
	return 0;
}

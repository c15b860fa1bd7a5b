/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread waits for connections, and each of them has one for the moments that it lasts: what it waits
 * for is the other side and munged, and neither holds up anybody else.
 */
#include "cluster/controller/listen.h"

#include "cluster/channel.h"
#include "cluster/seal.h"

#include "base/log.h"
#include "base/str.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>

#define NODES_USER   0 /* of cotenant-node */
#define VISIT_MS     5000
#define VISITS	     256
#define VISITS_EACH  8 /* from one address at a time */
#define LOG_EVERY_MS 1000
#define WHEN_FULL_US 100000

/* A credential is its text and a third more, as it is of letters, and a little around that. */
#define SEALED_BYTES (2 * REPORT_BYTES)

struct listener {
	struct listen_options options;
	int fd;
	int stop_fd;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t left;
	struct nodes nodes;
	struct in_addr visitors[VISITS];
	size_t n_visitors;
	uint64_t logged_ms;
};

/**
 * struct visit - a connection
 * @words:	why it was refused
 */
struct visit {
	struct listener *listener;
	int fd;
	struct in_addr from;
	uint64_t until_ms;
	char nonce[REPORT_NONCE];
	char words[REPORT_REASON + 64];
};

static int refuse(struct visit *v, const char *fmt, ...) PRINTF(2, 3);

static int refuse(struct visit *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->words, sizeof(v->words), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* --- whose it is --- */

static int make_nonce(char ret[REPORT_NONCE])
{
	unsigned char bytes[(REPORT_NONCE - 1) / 2];
	size_t i;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -errno;
	for (i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static bool is_address_of(const char *host, struct in_addr address)
{
	const struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM };
	struct addrinfo *found, *at;
	bool is_one = false;

	if (getaddrinfo(host, NULL, &hints, &found) != 0)
		return false;
	for (at = found; at; at = at->ai_next)
		is_one |= ((struct sockaddr_in *)at->ai_addr)->sin_addr.s_addr == address.s_addr;
	freeaddrinfo(found);
	return is_one;
}

/* Names are resolved without the lock: that may take as long as it likes. */
static int check_sender(struct visit *v, const char *name)
{
	_cleanup_free_ char *host = NULL;
	const struct node *node;
	bool is_known;

	pthread_mutex_lock(&v->listener->lock);
	node = nodes_find(&v->listener->nodes, name);
	is_known = node != NULL;
	host = node ? strdup(node->facts.address) : NULL;
	pthread_mutex_unlock(&v->listener->lock);
	if (!is_known)
		return refuse(v, "Slurm has no node '%s' with devices", name);
	if (!host)
		return refuse(v, "no memory");
	if (!is_address_of(host, v->from))
		return refuse(v, "reports of %s come from %s", name, host);
	return 0;
}

static int open_report(struct visit *v, const char *credential, struct report *ret)
{
	char reason[REPORT_REASON] = "no memory";
	_cleanup_free_ char *text = NULL;
	uid_t uid;

	if (seal_open(v->listener->options.munge_socket, credential, &text, &uid, reason) < 0)
		return refuse(v, "MUNGE: %s", reason);
	if (uid != NODES_USER)
		return refuse(v, "user %u sealed it, and not root", uid);
	if (report_parse(text, strlen(text), ret, reason) < 0)
		return refuse(v, "the report: %s", reason);
	if (!str_eq(ret->nonce, v->nonce))
		return refuse(v, "the report was made for another question");
	return 0;
}

static int take_report(struct visit *v, struct report *report)
{
	struct listener *l = v->listener;
	struct node *node;
	int r = -EINVAL;

	pthread_mutex_lock(&l->lock);
	node = nodes_find(&l->nodes, report->node);
	if (node)
		r = nodes_take(&l->nodes, node, report, channel_now_ms());
	if (r < 0)
		refuse(v, "%s", node ? node->refused : "the node has just gone");
	pthread_mutex_unlock(&l->lock);
	return r;
}

static int hear(struct visit *v)
{
	_cleanup_(report_done) struct report report = {};
	_cleanup_free_ char *credential = NULL;
	int r;

	r = make_nonce(v->nonce);
	if (r == 0)
		r = channel_write(v->fd, v->nonce, v->until_ms);
	if (r == 0)
		r = channel_read(v->fd, SEALED_BYTES, v->until_ms, &credential);
	if (r < 0)
		return refuse(v, "nothing came: %s", strerror(-r));
	r = open_report(v, credential, &report);
	if (r == 0)
		r = check_sender(v, report.node);
	return r < 0 ? r : take_report(v, &report);
}

/* --- one connection --- */

static void answer(struct visit *v)
{
	json_t *json =
		json_pack("{s:s, s:s*}", "nonce", v->nonce, "refused", *v->words ? v->words : NULL);
	_cleanup_free_ char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
	_cleanup_free_ char *credential = NULL;
	char reason[REPORT_REASON];

	json_decref(json);
	if (text && seal_close(v->listener->options.munge_socket, NODES_USER, text, &credential,
			       reason) == 0)
		channel_write(v->fd, credential, v->until_ms);
}

/* Somebody who is refused all the time fills no log. */
static void log_refusal(struct visit *v)
{
	struct listener *l = v->listener;
	uint64_t now = channel_now_ms();
	char from[INET_ADDRSTRLEN];
	bool is_quiet;

	pthread_mutex_lock(&l->lock);
	is_quiet = now - l->logged_ms < LOG_EVERY_MS;
	if (!is_quiet)
		l->logged_ms = now;
	pthread_mutex_unlock(&l->lock);
	if (!is_quiet)
		log_warn(0, "a report from %s is refused: %s",
			 inet_ntop(AF_INET, &v->from, from, sizeof(from)), v->words);
}

static void leave(struct visit *v)
{
	struct listener *l = v->listener;
	size_t i = 0;

	close(v->fd);
	pthread_mutex_lock(&l->lock);
	while (l->visitors[i].s_addr != v->from.s_addr)
		i++;
	l->visitors[i] = l->visitors[--l->n_visitors];
	pthread_cond_signal(&l->left);
	pthread_mutex_unlock(&l->lock);
	free(v);
}

static void *serve(void *userdata)
{
	struct visit *v = userdata;

	if (hear(v) < 0)
		log_refusal(v);
	answer(v);
	leave(v);
	return NULL;
}

/* --- all of them --- */

static bool enter(struct listener *l, struct in_addr from)
{
	size_t i, n = 0;
	bool has_place;

	pthread_mutex_lock(&l->lock);
	for (i = 0; i < l->n_visitors; i++)
		n += l->visitors[i].s_addr == from.s_addr;
	has_place = n < VISITS_EACH && l->n_visitors < VISITS;
	if (has_place)
		l->visitors[l->n_visitors++] = from;
	pthread_mutex_unlock(&l->lock);
	return has_place;
}

static void welcome(struct listener *l, int fd, const struct sockaddr_in *from)
{
	struct visit *v = calloc(1, sizeof(*v));
	pthread_t thread;

	if (!v || ntohs(from->sin_port) >= IPPORT_RESERVED || !enter(l, from->sin_addr)) {
		close(fd);
		free(v);
		return;
	}
	v->listener = l;
	v->fd = fd;
	v->from = from->sin_addr;
	v->until_ms = channel_now_ms() + VISIT_MS;
	if (pthread_create(&thread, NULL, serve, v) == 0)
		pthread_detach(thread);
	else
		leave(v);
}

static void *wait_for_visitors(void *userdata)
{
	struct listener *l = userdata;
	struct pollfd p[] = { { .fd = l->fd, .events = POLLIN },
			      { .fd = l->stop_fd, .events = POLLIN } };
	struct sockaddr_in from;
	socklen_t len;
	int fd;

	while (poll(p, ARRAY_SIZE(p), -1) < 0 || !p[1].revents) {
		len = sizeof(from);
		fd = accept4(l->fd, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
		if (fd >= 0)
			welcome(l, fd, &from);
		else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			usleep(WHEN_FULL_US);
	}
	return NULL;
}

int listener_start(const struct listen_options *options, struct listener **ret)
{
	struct listener *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return -ENOMEM;
	l->options = *options;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->left, NULL);
	l->stop_fd = eventfd(0, EFD_CLOEXEC);
	l->fd = channel_listen(options->address);
	r = l->fd < 0 ? l->fd : l->stop_fd < 0 ? -errno : 0;
	if (r == 0)
		r = -pthread_create(&l->thread, NULL, wait_for_visitors, l);
	if (r == 0) {
		*ret = l;
		return 0;
	}
	if (l->fd >= 0)
		close(l->fd);
	if (l->stop_fd >= 0)
		close(l->stop_fd);
	free(l);
	return r;
}

int listener_learn(struct listener *l, struct world *world)
{
	uint64_t now = channel_now_ms();
	const struct node *node;
	size_t i;
	int r;

	pthread_mutex_lock(&l->lock);
	r = nodes_learn(&l->nodes, TAKE_PTR(world->facts), world->n_facts,
			TAKE_PTR(world->node_jobs), world->n_node_jobs);
	world->n_facts = world->n_node_jobs = 0;
	for (i = 0; r == 0 && i < world->n_devices; i++) {
		node = nodes_find(&l->nodes, world->device_names[i].node);
		if (!node || node_is_silent(node, now, l->options.silent_ms))
			world->devices[i].usable = false;
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}

int listener_each(struct listener *l, listener_fn fn, void *userdata)
{
	uint64_t now = channel_now_ms();
	size_t i;
	int r = 0;

	pthread_mutex_lock(&l->lock);
	for (i = 0; r == 0 && i < l->nodes.n; i++) {
		struct node *node = &l->nodes.items[i];

		r = fn(node, node_is_silent(node, now, l->options.silent_ms), userdata);
	}
	pthread_mutex_unlock(&l->lock);
	return r;
}

void listener_stop(struct listener *l)
{
	if (!l)
		return;
	eventfd_write(l->stop_fd, 1);
	pthread_join(l->thread, NULL);
	pthread_mutex_lock(&l->lock);
	while (l->n_visitors)
		pthread_cond_wait(&l->left, &l->lock);
	pthread_mutex_unlock(&l->lock);
	close(l->fd);
	close(l->stop_fd);
	nodes_done(&l->nodes);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->left);
	free(l);
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All numbers as Prometheus text: per metric its head, then a line per series.
 * What is not known has no line.
 */
#include "daemon/daemon.h"
#include "daemon/gate.h"

#include <inttypes.h>

enum metric {
#define METRIC(id, name, type, help) METRIC_##id,
#include "daemon/metrics.def"
#undef METRIC
	N_METRICS,
};

static const struct {
	const char *name;
	const char *type;
	const char *help;
} metrics[N_METRICS] = {
#define METRIC(id, name, type, help) { name, type, help },
#include "daemon/metrics.def"
#undef METRIC
};

/* One list of lines per metric, so that one walk over the tenants fills them all. */
struct page {
	struct text lines[N_METRICS];
};

static void add_device(struct page *page, enum metric m, struct daemon *d, unsigned i, uint64_t v)
{
	text_addf(&page->lines[m], "%s{gpu=\"%u\",UUID=\"%s\"} %" PRIu64 "\n", metrics[m].name, i,
		  d->gpu->devices[i].uuid, v);
}

/* A tenant's name holds nothing that would need quoting. */
#define TENANT_LABELS "%s{tenant=\"%s\",gpu=\"%u\",UUID=\"%s\"}"

static void add_tenant(struct page *page, enum metric m, struct daemon *d, const struct tenant *t,
		       unsigned i, uint64_t v)
{
	text_addf(&page->lines[m], TENANT_LABELS " %" PRIu64 "\n", metrics[m].name, t->spec.name, i,
		  d->gpu->devices[i].uuid, v);
}

static void add_tenant_seconds(struct page *page, enum metric m, struct daemon *d,
			       const struct tenant *t, unsigned i, double seconds)
{
	text_addf(&page->lines[m], TENANT_LABELS " %.6f\n", metrics[m].name, t->spec.name, i,
		  d->gpu->devices[i].uuid, seconds);
}

static void device_lines(struct page *page, struct daemon *d, unsigned i)
{
	struct gpu_memory m;
	struct ledger all;

	add_device(page, METRIC_DEVICE_TOTAL, d, i, d->gpu->devices[i].total_bytes);
	add_device(page, METRIC_DEVICE_RESERVE, d, i, daemon_reserve(d, i));
	add_device(page, METRIC_DEVICE_UNOWNED, d, i, d->unowned_bytes[i]);
	if (d->gpu->ops->memory(d->gpu, i, &m) == 0)
		add_device(page, METRIC_DEVICE_USED, d, i, m.used_bytes);
	if (d->engine && engine_book(d->engine, 0, i, &all) == 0)
		add_device(page, METRIC_DEVICE_CHARGED, d, i, all.current);
}

static void tenant_device_lines(struct page *page, struct daemon *d, const struct tenant *t,
				unsigned i)
{
	struct device_limits limits;
	struct ledger book;
	struct share share;

	tenant_limits(&d->tenants, t, i, &limits);
	if (limits.memory_max != QUANTITY_MAX)
		add_tenant(page, METRIC_TENANT_MAX, d, t, i, limits.memory_max);
	add_tenant(page, METRIC_TENANT_LOW, d, t, i, limits.memory_low);
	if (t->last_active_us[i])
		add_tenant_seconds(page, METRIC_TENANT_ACTIVE, d, t, i, t->last_active_us[i] / 1e6);
	if (!d->engine || !t->number || engine_book(d->engine, t->number, i, &book) != 0)
		return;
	add_tenant(page, METRIC_TENANT_CURRENT, d, t, i, book.current);
	add_tenant(page, METRIC_TENANT_PEAK, d, t, i, book.peak);
	add_tenant(page, METRIC_TENANT_REFUSED, d, t, i, book.n_refused);
	add_tenant(page, METRIC_TENANT_HELD, d, t, i, book.n_held);
	add_tenant(page, METRIC_TENANT_WAITING, d, t, i, book.n_queued);
	if (d->compute_reason || engine_compute_stat(d->engine, t->number, i, &share) != 0)
		return;
	add_tenant_seconds(page, METRIC_TENANT_USAGE, d, t, i, share.usage_ns / 1e9);
	add_tenant_seconds(page, METRIC_TENANT_THROTTLED, d, t, i, share.throttled_ns / 1e9);
}

static void tenant_lines(struct page *page, struct daemon *d, const struct tenant *t)
{
	unsigned i;

	for (i = 0; i < daemon_n_devices(d); i++)
		tenant_device_lines(page, d, t, i);
}

static void add_number(struct page *page, enum metric m, uint64_t v)
{
	text_addf(&page->lines[m], "%s %" PRIu64 "\n", metrics[m].name, v);
}

static void event_lines(struct page *page, struct daemon *d)
{
	struct event_log_state state;
	int kind;

	for (kind = 0; kind < N_EVENT_KINDS; kind++)
		text_addf(&page->lines[METRIC_EVENTS], "%s{kind=\"%s\"} %" PRIu64 "\n",
			  metrics[METRIC_EVENTS].name, event_kind_name(kind),
			  event_log_count(d->events, kind));
	event_log_state(d->events, &state);
	add_number(page, METRIC_EVENTS_WAITING, state.n_waiting);
	add_number(page, METRIC_EVENTS_LOST, state.n_lost);
}

static void gate_lines(struct page *page, struct daemon *d)
{
	struct gate_counts counts = gate_counts(d);

	add_number(page, METRIC_GATE_REPORTS, counts.n_reports);
	add_number(page, METRIC_GATE_ASKED, counts.n_asked);
	add_number(page, METRIC_GATE_LOOKS, counts.n_looks);
}

static char *print_page(struct page *page)
{
	struct text out = {};
	int m;

	for (m = 0; m < N_METRICS; m++) {
		if (page->lines[m].failed)
			out.failed = true;
		if (page->lines[m].len > 0)
			text_addf(&out, "# HELP %s %s\n# TYPE %s %s\n", metrics[m].name,
				  metrics[m].help, metrics[m].name, metrics[m].type);
		if (page->lines[m].len > 0)
			text_addn(&out, page->lines[m].data, page->lines[m].len);
		text_done(&page->lines[m]);
	}
	return text_take(&out);
}

char *method_metrics(struct daemon *d, uid_t uid)
{
	struct page page = {};
	const struct tenant *t;
	unsigned i;

	text_addf(&page.lines[METRIC_UP], "%s %d\n", metrics[METRIC_UP].name, d->engine ? 1 : 0);
	for (i = 0; i < daemon_n_devices(d); i++)
		device_lines(&page, d, i);
	for (t = d->tenants.first; t; t = t->next) {
		if (tenant_is_visible(t, uid))
			tenant_lines(&page, d, t);
	}
	/* How often something happened to others is theirs to know. */
	if (uid == 0) {
		event_lines(&page, d);
		gate_lines(&page, d);
	}
	return print_page(&page);
}

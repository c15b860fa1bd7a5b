// SPDX-License-Identifier: Apache-2.0
#include "softgpu/engine/line.h"

#include "softgpu/state/internal.h"

#define CLIENT_BITS 20
#define CLIENT_MASK ((1ull << CLIENT_BITS) - 1)
#define LENGTH_MAX  ((1ull << (64 - CLIENT_BITS)) - 1)
#define BACKLOG_MAX (1ull << 52)     /* more is no work but damage */
#define LATE_TURNS  1024	     /* 2 s of turns */
#define AHEAD_MAX   3600000000000ull /* turns end a slice from now; in an hour is damage */

static struct state_client *turn_client(struct state_file *file, struct pair turn)
{
	return &file->clients[(turn.b & CLIENT_MASK) % STATE_CLIENTS_MAX];
}

static bool owner_is_live(const struct state_file *file, uint64_t owner)
{
	const struct state_slot *slot = &file->slots[owner % STATE_SLOTS_MAX];

	return owner != 0 && slot_is_live(slot) && atomic_load(&slot->birth) == owner;
}

/* What a client has asked for and not been given; 0 for the dead. */
static uint64_t backlog(const struct state_file *file, const struct state_client *client)
{
	uint64_t owner = atomic_load(&client->owner);
	uint64_t want, served;

	if (owner == 0 || atomic_load(&client->filled) != owner)
		return 0;
	want = atomic_load(&client->want);
	served = pair_load(&client->served).b;
	if (want <= served || want - served > BACKLOG_MAX || !owner_is_live(file, owner))
		return 0;
	return want - served;
}

/* The counters that monitors read; only by the one who entered the turn in @served. */
static void turn_count(struct state_file *file, const struct state_client *client,
		       uint64_t begin_ns, uint64_t end_ns)
{
	uint64_t period_ns = file_period_ns(file);
	struct state_slot *slot = &file->slots[atomic_load(&client->owner) % STATE_SLOTS_MAX];

	samples_add(file->samples, STATE_SAMPLES_DEVICE, period_ns, begin_ns, end_ns);
	samples_add(slot->samples, STATE_SAMPLES_PROCESS, period_ns, begin_ns, end_ns);
	atomic_fetch_add(&file->busy_ns, end_ns - begin_ns);
}

/* Enters the last turn in its client's sum, if nobody has yet. */
static struct pair turn_complete(struct state_file *file)
{
	struct pair turn = pair_load(&file->turn), served;
	struct state_client *client = turn_client(file, turn);
	uint64_t length = turn.b >> CLIENT_BITS;

	do {
		served = pair_load(&client->served);
		if (served.a >= turn.a)
			return turn;
	} while (!pair_replace(&client->served, served,
			       (struct pair){ .a = turn.a, .b = served.b + length }));
	turn_count(file, client, turn.a - length, turn.a);
	return turn;
}

/*
 * Who is next after a turn that ended at @end_ns.
 * @index:	-1: nobody has work
 * @n_waiting:	clients that have work, with the next
 */
struct next {
	int index;
	uint64_t begin_ns;
	uint64_t backlog_ns;
	uint32_t n_waiting;
};

static struct next next_find(const struct state_file *file, uint32_t last, uint64_t end_ns)
{
	uint32_t n = state_bounded(&file->n_clients, STATE_CLIENTS_MAX), index;
	struct next next = { .index = -1, .begin_ns = LINE_NEVER };
	uint64_t ns, begin;

	for (uint32_t i = 1; i <= n; i++) {
		index = (last + i) % n;
		ns = backlog(file, &file->clients[index]);
		if (ns == 0)
			continue;
		next.n_waiting++;
		begin = atomic_load(&file->clients[index].ready_ns);
		begin = begin > end_ns ? begin : end_ns;
		if (begin >= next.begin_ns)
			continue;
		next.index = (int)index;
		next.begin_ns = begin;
		next.backlog_ns = ns;
	}
	return next;
}

/* A turn is kept against others; where nobody waits, what follows gets the next one anyway. */
static bool turn_is_kept(const struct state_file *file, const struct next *next)
{
	return next->n_waiting > 1 && atomic_load(&file->clients[next->index].keeps_turn);
}

static uint64_t turn_length(const struct state_file *file, const struct next *next, uint64_t now_ns)
{
	uint64_t slice = file_slice_ns(file), late = (now_ns - next->begin_ns) / LATE_TURNS;

	/* Hours that nobody looked at are made up for in longer turns, not in millions. */
	if (slice < late)
		slice = late < LENGTH_MAX ? late : LENGTH_MAX;
	if (next->backlog_ns >= slice || turn_is_kept(file, next))
		return slice;
	return next->backlog_ns;
}

/* A file that somebody scribbled on would keep the line waiting for years. */
static void turn_mend(struct state_file *file, uint64_t now_ns)
{
	struct pair turn = pair_load(&file->turn);

	if (turn.a > now_ns && turn.a - now_ns > AHEAD_MAX)
		pair_replace(&file->turn, turn, (struct pair){ .a = now_ns });
}

/* Likewise: nobody was served later than the last turn. Read in this order it cannot have moved. */
static void served_mend(struct state_file *file, struct state_client *client)
{
	struct pair served = pair_load(&client->served);

	if (served.a > pair_load(&file->turn).a)
		pair_replace(&client->served, served, (struct pair){ .b = served.b });
}

void line_advance(struct state_file *file, uint64_t now_ns)
{
	struct pair turn, to;
	struct next next;
	uint64_t length;

	turn_mend(file, now_ns);
	for (;;) {
		turn = turn_complete(file);
		if (turn.a > now_ns)
			return;
		next = next_find(file, (uint32_t)(turn.b & CLIENT_MASK), turn.a);
		if (next.index < 0 || next.begin_ns > now_ns)
			return;
		length = turn_length(file, &next, now_ns);
		to.a = next.begin_ns + length;
		to.b = length << CLIENT_BITS | (uint64_t)next.index;
		/* If it fails somebody else gave a turn; go on from there. */
		pair_replace(&file->turn, turn, to);
	}
}

int line_join(struct state_file *file, uint64_t owner)
{
	struct state_client *client;
	uint64_t old;

	for (uint32_t i = 0; i < STATE_CLIENTS_MAX; i++) {
		client = &file->clients[i];
		old = atomic_load(&client->owner);
		if (owner_is_live(file, old))
			continue;
		turn_complete(file);
		state_raise(&file->n_clients, i + 1);
		if (!atomic_compare_exchange_strong(&client->owner, &old, owner))
			continue;
		served_mend(file, client);
		atomic_store(&client->filled, 0);
		atomic_store(&client->keeps_turn, 0);
		atomic_store(&client->ready_ns, 0);
		atomic_store(&client->first, pair_load(&client->served).b);
		atomic_store(&client->want, atomic_load(&client->first));
		atomic_store(&client->filled, owner);
		return (int)i;
	}
	return -1;
}

void line_leave(struct state_file *file, struct state_slot *slot, int index)
{
	struct state_client *client = &file->clients[index];

	line_give_up(file, index);
	turn_complete(file);
	atomic_store(&client->filled, 0);
	atomic_fetch_add(&slot->busy_past_ns,
			 pair_load(&client->served).b - atomic_load(&client->first));
	atomic_store(&client->owner, 0);
}

/* Credit lies at the end of the last turn; what of it was over before @ready_ns is lost. */
static uint64_t credit_lost(struct pair served, uint64_t want, uint64_t ready_ns)
{
	uint64_t credit, begin;

	if (served.b <= want)
		return 0;
	credit = served.b - want;
	begin = served.a > credit ? served.a - credit : 0;
	if (ready_ns <= begin)
		return 0;
	return ready_ns - begin < credit ? ready_ns - begin : credit;
}

uint64_t line_ask(struct state_file *file, int index, uint64_t ns, uint64_t ready_ns,
		  bool keeps_turn, bool *ret_lost)
{
	struct state_client *client = &file->clients[index];
	uint64_t want = atomic_load(&client->want), lost;

	turn_complete(file);
	lost = credit_lost(pair_load(&client->served), want, ready_ns);
	want += lost + ns;
	atomic_store(&client->ready_ns, ready_ns);
	atomic_store(&client->keeps_turn, keeps_turn);
	atomic_store(&client->want, want);
	*ret_lost = lost > 0;
	return want;
}

void line_give_up(struct state_file *file, int index)
{
	struct state_client *client = &file->clients[index];

	atomic_store(&client->keeps_turn, 0);
	atomic_store(&client->want, pair_load(&client->served).b);
}

/*
 * The least that others will be served before a client has had @n_turns of its own: those
 * between the last turn's client and it have as many turns, the rest one less.
 */
static uint64_t others_before(const struct state_file *file, uint32_t last, uint32_t index,
			      uint64_t n_turns)
{
	uint32_t n = state_bounded(&file->n_clients, STATE_CLIENTS_MAX), i;
	uint64_t slice = file_slice_ns(file), sum = 0, ns, most;
	bool is_before = true;

	for (uint32_t step = 1; step <= n; step++) {
		i = (last + step) % n;
		if (i == index) {
			is_before = false;
			continue;
		}
		ns = backlog(file, &file->clients[i]);
		most = (is_before ? n_turns : n_turns - 1) * slice;
		sum += ns < most ? ns : most;
	}
	return sum;
}

uint64_t line_end(struct state_file *file, int index, uint64_t position, bool *ret_known)
{
	struct pair turn = turn_complete(file), served = pair_load(&file->clients[index].served);
	uint64_t slice = file_slice_ns(file), rest;

	*ret_known = served.b >= position;
	if (*ret_known)
		return served.a - (served.b - position);
	rest = position - served.b;
	return turn.a + rest +
	       others_before(file, (uint32_t)(turn.b & CLIENT_MASK), (uint32_t)index,
			     (rest + slice - 1) / slice);
}

// SPDX-License-Identifier: Apache-2.0
#include "forward/vm/fake-worker.h"

#include "base/base.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>

static int fake_ioctl(int fd, unsigned long request, void *arg);

#define ioctl fake_ioctl
#include "forward/vm/mapping.c"
#undef ioctl

#include "forward/host/spawn.h"
#include "forward/socket.h"
#include "forward/vm/leftover.h"

/* Nobody's: who is killed does not exist. */
#define FIRST_PID     0x7ffffff0
#define FIRST_ADDRESS 0x100000000000ULL
#define MAX_MAPPINGS  256
#define MAX_ROUNDS    1000

/* What is not quite right about a mapper's deed. */
enum {
	WRONG_WORD = 1,
	WRONG_PLACE = 2,
	WRONG_FD = 4,
	WRONG_KILLED = 8,
};

/**
 * struct fake - a worker and its mapper, the ends of theirs that the broker does not have
 * @exit:	an event that stands for the worker's pidfd, @mapper_exit for the mapper's
 * @listener:	one that stands for the mapper's listener
 * @bells:	that it rings: of lanes, and last of the service
 * @kicks:	that wake its lanes
 * @next:	an address that nothing is at
 */
struct fake {
	bool is_there, is_over, has_said_hello, has_mapper, mapper_is_over;
	int socket, exit, mapper, listener, mapper_exit;
	int bells[FAKE_LANES + 1];
	int kicks[FAKE_LANES];
	uint64_t next;
	struct fake_mapping mappings[MAX_MAPPINGS];
	size_t n_mappings;
};

/* What the kernel asks the broker about. */
static struct {
	bool is_there, is_killed, has_memory, is_answered, is_allowed;
	struct seccomp_notif notif;
} question;

struct fake_counts fake_counts;
static struct fake fakes[FAKE_WORKERS];
static uint32_t next_session;
static const struct ram *memory;
static const struct fake_guest *kernel;

static struct fake *fake_of(uint32_t session)
{
	return &fakes[session < FAKE_WORKERS ? session : 0];
}

static uint32_t session_of(const struct fake *f)
{
	return (uint32_t)(f - fakes);
}

static void drop(int *fd)
{
	if (*fd >= 0)
		close(TAKE_FD(*fd));
}

static int event_new(void)
{
	int fd = eventfd(0, EFD_NONBLOCK);

	if (fd < 0)
		abort();
	return fd;
}

static int copy_of(int fd)
{
	int copy = dup(fd);

	if (copy < 0)
		abort();
	return copy;
}

static void happens(int event)
{
	if (eventfd_write(event, 1) < 0)
		abort();
}

static void fake_close(struct fake *f)
{
	size_t i;

	if (!f->is_there)
		return;
	for (i = 0; i < FAKE_LANES; i++)
		drop(&f->kicks[i]);
	for (i = 0; i <= FAKE_LANES; i++)
		drop(&f->bells[i]);
	drop(&f->socket);
	drop(&f->exit);
	drop(&f->mapper);
	drop(&f->listener);
	drop(&f->mapper_exit);
	f->is_there = false;
}

void fake_workers_gone(void)
{
	size_t i;

	for (i = 0; i < FAKE_WORKERS; i++)
		fake_close(&fakes[i]);
}

void fake_workers_begin(const struct ram *ram, const struct fake_guest *guest)
{
	fake_workers_gone();
	memory = ram;
	kernel = guest;
}

void fake_worker_for(uint32_t session)
{
	next_session = session;
}

int worker_start(_unused_ const struct worker_program *program, _unused_ bool mapped,
		 struct worker *ret)
{
	struct fake *f = fake_of(next_session);
	int pair[2], mapper[2];
	size_t i;

	fake_close(f);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, mapper) < 0)
		abort();
	*f = (struct fake){ .is_there = true,
			    .socket = pair[1],
			    .exit = event_new(),
			    .mapper = mapper[1],
			    .listener = event_new(),
			    .mapper_exit = event_new(),
			    .next = FIRST_ADDRESS };
	for (i = 0; i < FAKE_LANES; i++)
		f->kicks[i] = -1;
	for (i = 0; i <= FAKE_LANES; i++)
		f->bells[i] = -1;
	*ret = (struct worker){ FIRST_PID + (pid_t)session_of(f), pair[0], copy_of(f->exit),
				mapper[0] };
	return 0;
}

/* Worker and mapper have one address space, which is there until both have ended. */
static bool has_space(const struct fake *f)
{
	return f->is_there && (!f->is_over || (f->has_mapper && !f->mapper_is_over));
}

bool fake_has(uint32_t serial)
{
	const struct fake *f;
	size_t i;

	for (f = fakes; f < fakes + FAKE_WORKERS; f++)
		for (i = 0; has_space(f) && i < f->n_mappings; i++)
			if (f->mappings[i].serial == serial)
				return true;
	return false;
}

static bool overlap(const struct fake_mapping *m, uint64_t at, uint64_t size)
{
	return m->at < at + size && at < m->at + m->size;
}

/* As /proc tells of a process: by where it has something, and nothing of one that has ended. */
int leftover_check(_unused_ const struct ram *ram, pid_t pid, uint64_t at, uint64_t size)
{
	const struct fake *f = &fakes[pid - FIRST_PID];
	size_t i;

	if (f->is_over)
		return -ESRCH;
	for (i = 0; i < f->n_mappings; i++)
		if (overlap(&f->mappings[i], at, size)) {
			fake_counts.kept++;
			return -EBUSY;
		}
	return 0;
}

static void unmap(struct fake *f, uint32_t serial)
{
	size_t i = 0;

	while (i < f->n_mappings)
		if (f->mappings[i].serial == serial)
			f->mappings[i] = f->mappings[--f->n_mappings];
		else
			i++;
}

/* The mapping is made where the kernel would make it. */
static void allowed(struct fake *f)
{
	const struct seccomp_data *data = &question.notif.data;
	const struct ram_region *region = memory->regions;
	uint64_t guest, at = data->args[0], size = data->args[1];
	uint32_t serial;

	/* Regions follow each other in their file. */
	while (region + 1 < memory->regions + memory->n && region[1].offset <= data->args[5])
		region++;
	guest = region->guest + (data->args[5] - region->offset);
	serial = kernel->named(session_of(f), guest, size);
	if (data->args[4] != MAPPER_MEMORY || !question.has_memory || serial == 0)
		abort();
	if (at % 4096 || at >= 1ULL << 47 || f->n_mappings == MAX_MAPPINGS)
		return;
	f->mappings[f->n_mappings++] = (struct fake_mapping){ serial, at, size };
	fake_counts.mapped++;
}

static int add_memory(const struct seccomp_notif_addfd *add)
{
	size_t i;

	for (i = 0; i < memory->n && memory->regions[i].fd != (int)add->srcfd; i++)
		;
	if (add->id != question.notif.id || i == memory->n || add->newfd != MAPPER_MEMORY)
		abort();
	if (question.is_killed)
		return -ENOENT;
	question.has_memory = true;
	return 0;
}

static void answered(const struct seccomp_notif_resp *response)
{
	question.is_answered = true;
	question.is_allowed = response->flags & SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	/* What is not allowed has to be an error, or it would be an address. */
	if (question.is_allowed ? !question.has_memory : response->error >= 0)
		abort();
}

/* A listener's, as seccomp(2) has them. */
static int fake_ioctl(int fd, unsigned long request, void *arg)
{
	eventfd_t n;
	int r = 0;

	if (!question.is_there)
		r = -ENOENT;
	else if (request == SECCOMP_IOCTL_NOTIF_RECV)
		*(struct seccomp_notif *)arg = question.notif;
	else if (request == SECCOMP_IOCTL_NOTIF_ADDFD)
		r = add_memory(arg);
	else
		answered(arg);
	if (request == SECCOMP_IOCTL_NOTIF_RECV)
		eventfd_read(fd, &n);
	errno = -r;
	return r < 0 ? -1 : 0;
}

static bool is_readable(int fd)
{
	struct pollfd one = { fd, POLLIN, 0 };

	return poll(&one, 1, 0) == 1;
}

static void idle_ready(struct source *source)
{
	eventfd_t n;

	eventfd_read(source->fd, &n);
}

void fake_settle(void)
{
	static struct source idle = { .fd = -1 };
	unsigned served, quiet = 0, rounds = 0;

	if (idle.fd < 0 && source_add(&idle, event_new(), idle_ready) < 0)
		abort();
	do {
		if (rounds++ == MAX_ROUNDS)
			abort();
		happens(idle.fd);
		for (served = 0; served == 0 || is_readable(idle.fd); served++)
			loop_once();
		/* The event itself may have been first in line, once. */
		quiet = served > 1 ? 0 : quiet + 1;
	} while (quiet < 2);
}

/* Return: may it map that? */
static bool ask(struct fake *f, const struct mapper_piece *piece, uint32_t wrong)
{
	static uint64_t id;
	struct seccomp_data *data = &question.notif.data;

	memset(&question, 0, sizeof(question));
	question.is_there = true;
	question.is_killed = wrong & WRONG_KILLED;
	question.notif.id = ++id;
	*data = (struct seccomp_data){ .args = { piece->address, piece->size,
						 PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
						 MAPPER_MEMORY, piece->offset } };
	if (wrong & WRONG_PLACE)
		data->args[wrong / 16 % 6] += wrong & 256 ? 4096 : 1;
	if (wrong & WRONG_FD)
		data->args[4] = WORKER_MAPPER;
	happens(f->listener);
	fake_settle();
	question.is_there = false;
	if (question.is_allowed)
		allowed(f);
	else
		fake_counts.not_mapped++;
	return question.is_allowed;
}

static int do_job(struct fake *f, uint32_t wrong)
{
	static struct mapper_job job;
	size_t i;

	if (recv(f->mapper, &job, sizeof(job), 0) < (ssize_t)sizeof(job.n))
		return -EAGAIN;
	for (i = 0; i < job.n; i++)
		if (!ask(f, &job.pieces[i], wrong) && !(wrong & WRONG_WORD))
			return -EPERM;
	return 0;
}

static void introduce(struct fake *f, uint32_t wrong)
{
	union {
		struct cmsghdr header;
		char room[CMSG_SPACE(2 * sizeof(int))];
	} control = { .header = { CMSG_LEN(2 * sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	int error = wrong & WRONG_WORD ? -EIO : 0, fds[] = { f->listener, f->mapper_exit };
	struct iovec part = { &error, sizeof(error) };
	struct msghdr header = { .msg_iov = &part,
				 .msg_iovlen = 1,
				 .msg_control = &control,
				 .msg_controllen = CMSG_SPACE(2 * sizeof(int)) };

	if (wrong & WRONG_FD) {
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		header.msg_controllen = CMSG_SPACE(sizeof(int));
	}
	memcpy(CMSG_DATA(&control.header), fds, control.header.cmsg_len - CMSG_LEN(0));
	f->has_mapper =
		sendmsg(f->mapper, &header, MSG_NOSIGNAL) > 0 && !(wrong & (WRONG_WORD | WRONG_FD));
}

void fake_mapper_works(uint32_t session, uint32_t wrong)
{
	struct fake *f = fake_of(session);
	int error;

	if (!f->is_there || f->mapper_is_over)
		return;
	if (!f->has_mapper) {
		introduce(f, wrong);
	} else {
		error = do_job(f, wrong);
		if (error != -EAGAIN || wrong & WRONG_WORD)
			send(f->mapper, &error, sizeof(error), MSG_NOSIGNAL);
	}
	fake_settle();
}

static void say(struct fake *f, const struct wire_message *message)
{
	socket_send(f->socket, message, NULL, 0);
	fake_settle();
}

static void take_bell(int *at, struct socket_message *m, size_t i)
{
	if (i >= m->n_fds)
		return;
	drop(at);
	*at = TAKE_FD(m->fds[i]);
}

static void obey(struct fake *f, struct socket_message *m, bool keeps)
{
	struct wire_message *message = &m->message;
	uint32_t lane = message->id % FAKE_LANES;

	switch (message->type) {
	case WIRE_RESERVE:
		message->at = f->next;
		f->next += message->size;
		break;
	case WIRE_SESSION_OPEN:
		take_bell(&f->bells[FAKE_LANES], m, 0);
		break;
	case WIRE_LANE_ADD:
		take_bell(&f->kicks[lane], m, 0);
		take_bell(&f->bells[lane], m, 1);
		break;
	case WIRE_LANE_REMOVE:
	case WIRE_REVOKE:
		if (!keeps)
			unmap(f, kernel->ended(session_of(f), message));
		break;
	default:
		break;
	}
	socket_message_done(m);
	message->error = 0;
	say(f, message);
}

void fake_worker_works(uint32_t session, bool keeps)
{
	static const struct wire_message hello = { .type = WIRE_HELLO };
	static struct socket_message message;
	struct fake *f = fake_of(session);

	if (!f->is_there || f->is_over)
		return;
	if (!f->has_said_hello) {
		f->has_said_hello = true;
		say(f, &hello);
	} else if (socket_receive(f->socket, &message) == 0) {
		obey(f, &message, keeps);
	}
}

void fake_worker_says(uint32_t session, const struct wire_message *message)
{
	struct fake *f = fake_of(session);

	if (f->is_there && !f->is_over)
		say(f, message);
}

void fake_worker_rings(uint32_t session, uint32_t lane, bool closes)
{
	struct fake *f = fake_of(session);
	int *bell = &f->bells[lane % (FAKE_LANES + 1)];

	if (!f->is_there || *bell < 0)
		return;
	if (closes)
		drop(bell);
	else
		send(*bell, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	fake_settle();
}

bool fake_worker_wakes(uint32_t session, uint32_t lane)
{
	struct fake *f = fake_of(session);
	char bytes[64];
	bool woken = f->is_there && f->kicks[lane % FAKE_LANES] >= 0 &&
		     recv(f->kicks[lane % FAKE_LANES], bytes, sizeof(bytes), MSG_DONTWAIT) > 0;

	fake_counts.woken += woken;
	return woken;
}

void fake_worker_ends(uint32_t session, bool mapper)
{
	struct fake *f = fake_of(session);
	bool *is_over = mapper ? &f->mapper_is_over : &f->is_over;

	if (!f->is_there || *is_over)
		return;
	*is_over = true;
	drop(mapper ? &f->mapper : &f->socket);
	happens(mapper ? f->mapper_exit : f->exit);
	fake_settle();
}

// SPDX-License-Identifier: Apache-2.0
/* Two processes: the test and a child that has nothing but the ticket. */
#include "softgpu/mem/section.h"
#include "softgpu/mem/share.h"
#include "softgpu/mem/test.h"
#include "softgpu/mem/vram.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK SPACE_BLOCK_SIZE

static _Atomic uint64_t charged;

static int take(_unused_ void *arg, uint64_t bytes)
{
	charged += bytes;
	return 0;
}

static void give(_unused_ void *arg, uint64_t bytes)
{
	charged -= bytes;
}

static const struct share_charge charge = { take, give, NULL };

struct fixture {
	struct vram *vram;
	struct vram_range range;
	struct share_ticket ticket;
	int to_child[2], to_parent[2];
	pid_t child;
};

static char *map(const struct share_import *import)
{
	uint64_t addr;

	CHECK(section_reserve(0, import->size, BLOCK, 0, &addr) == 0);
	CHECK(section_map(addr, import->size, import->fd, import->offset, true) == 0);
	return (char *)addr;
}

/* Opens, tells what it read, writes 9, and closes when it is told to. */
static void child_main(struct fixture *f)
{
	struct share_import import;
	char *bytes, byte;

	CHECK(share_import(&f->ticket, &import) == 0);
	bytes = map(&import);
	byte = bytes[5];
	bytes[5] = 9;
	CHECK(write(f->to_parent[1], &byte, 1) == 1);
	CHECK(read(f->to_child[0], &byte, 1) == 1);
	CHECK(bytes[5] == 9);
	share_close(&import);
	_exit(0);
}

static void fixture_start(struct fixture *f)
{
	char byte;

	CHECK(vram_new(VRAM_DEVICE, "test", 1ULL << 32, SPACE_EVERYONE, &charge, &f->vram) == 0);
	CHECK(vram_alloc(f->vram, BLOCK, SPACE_READ_WRITE, &f->range) == 0);
	CHECK(share_export(vram_file(f->vram), vram_offset(&f->range), f->range.span, 1,
			   &f->ticket) == 0);
	f->range.is_exported = true;
	((char *)f->range.space.addr)[5] = 42;

	CHECK(pipe(f->to_child) == 0 && pipe(f->to_parent) == 0);
	f->child = child_new();
	if (f->child == 0)
		child_main(f);
	close(f->to_child[0]);
	close(f->to_parent[1]);
	CHECK(read(f->to_parent[0], &byte, 1) == 1 && byte == 42);
	CHECK(((char *)f->range.space.addr)[5] == 9);
}

/* Until somebody pays, or nobody; a minute at most. */
static void wait_charged(uint64_t bytes)
{
	for (int i = 0; i < 6000 && charged != bytes; i++)
		usleep(10000);
	CHECK(charged == bytes);
}

/*
 * Whoever gave the charge back, in a thread of its own, may still have the lock of these books. Whoever
 * has had it after him may take them away.
 */
static void wait_through(struct vram *vram)
{
	struct vram_range range;

	CHECK(vram_alloc(vram, BLOCK, SPACE_READ_WRITE, &range) == 0);
	vram_release(&range);
}

static void fixture_end(struct fixture *f)
{
	struct share_import import;

	wait_charged(0);
	wait_through(f->vram);
	CHECK(share_import(&f->ticket, &import) == SHARE_E_GONE);
	vram_free(f->vram);
	close(f->to_child[1]);
	close(f->to_parent[0]);
}

static void test_close_then_free(void)
{
	struct fixture f;

	fixture_start(&f);
	CHECK(write(f.to_child[1], "", 1) == 1 && waitpid(f.child, NULL, 0) == f.child);
	vram_release(&f.range);
	CHECK(charged == 0);
	fixture_end(&f);
}

static void test_free_then_close(void)
{
	struct vram_range other;
	struct fixture f;
	int status;

	fixture_start(&f);
	vram_release(&f.range);
	CHECK(charged == BLOCK && !space_find(f.range.space.addr));
	CHECK(vram_alloc(f.vram, BLOCK, SPACE_READ_WRITE, &other) == 0);
	memset((void *)other.space.addr, 1, BLOCK);
	vram_release(&other);
	CHECK(write(f.to_child[1], "", 1) == 1 && waitpid(f.child, &status, 0) == f.child);
	CHECK(status == 0);
	fixture_end(&f);
}

static void test_free_then_kill(void)
{
	struct fixture f;

	fixture_start(&f);
	vram_release(&f.range);
	CHECK(charged == BLOCK);
	kill(f.child, SIGKILL);
	CHECK(waitpid(f.child, NULL, 0) == f.child);
	fixture_end(&f);
}

/* The exporter is a child this time, which dies; the test is the importer and pays. */
static void test_inheritance(void)
{
	struct share_import import, second, *payer, *other;
	struct share_ticket ticket;
	struct vram_range range;
	struct vram *vram;
	int pipe_fds[2];
	pid_t child;

	CHECK(pipe(pipe_fds) == 0);
	child = child_new();
	if (child == 0) {
		CHECK(vram_new(VRAM_DEVICE, "test", 1ULL << 32, SPACE_EVERYONE, &charge, &vram) ==
		      0);
		CHECK(vram_alloc(vram, 1000, SPACE_READ_WRITE, &range) == 0);
		CHECK(share_export(vram_file(vram), vram_offset(&range), range.span, 1, &ticket) ==
		      0);
		CHECK(write(pipe_fds[1], &ticket, sizeof(ticket)) == sizeof(ticket));
		pause();
	}

	close(pipe_fds[1]);
	CHECK(read(pipe_fds[0], &ticket, sizeof(ticket)) == sizeof(ticket));
	CHECK(share_import(&ticket, &import) == 0 && share_import(&ticket, &second) == 0);
	share_inherit(&import, &charge);
	share_inherit(&second, &charge);
	usleep(60000);
	CHECK(charged == 0);

	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
	wait_charged(BLOCK);

	/* The other one takes over. */
	payer = import.is_payer ? &import : &second;
	other = import.is_payer ? &second : &import;
	share_close(payer);
	wait_charged(BLOCK);
	CHECK(other->is_payer);
	share_close(other);
	CHECK(charged == 0);
	close(pipe_fds[0]);
}

static void test_bad_tickets(void)
{
	struct share_import import;
	struct share_ticket bad;
	struct fixture f;

	fixture_start(&f);
	bad = f.ticket;
	bad.inode++;
	CHECK(share_import(&bad, &import) == SHARE_E_GONE);
	bad = f.ticket;
	bad.offset = UINT64_MAX - BLOCK + 1;
	CHECK(share_import(&bad, &import) == SHARE_E_GONE);
	bad = f.ticket;
	bad.offset = 100 * BLOCK;
	CHECK(share_import(&bad, &import) == SHARE_E_GONE);
	bad = f.ticket;
	bad.fd = 12345;
	CHECK(share_import(&bad, &import) == SHARE_E_GONE);
	CHECK(write(f.to_child[1], "", 1) == 1 && waitpid(f.child, NULL, 0) == f.child);
	vram_release(&f.range);
	fixture_end(&f);
}

static const struct test_case cases[] = {
	{ "share: closed, then freed", test_close_then_free },
	{ "share: freed while open stays, charged, until it is closed", test_free_then_close },
	{ "share: an importer that is killed lets go", test_free_then_kill },
	{ "share: when the exporter is gone one importer pays", test_inheritance },
	{ "share: tickets of nothing are refused", test_bad_tickets },
};

TEST_MAIN(cases)

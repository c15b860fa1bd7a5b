/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that two processes use.
 *
 * An importer opens the exporter's file through /proc and maps a part of it. Who still uses a part
 * is told by record locks on its bytes in that file: they belong to an open file description, so
 * the kernel drops them when their owner dies, however it died. The exporter holds a read lock
 * while the allocation lives, each importer one while it has the memory open. Thus
 *
 *	importer: lock, then look whether anybody else has a lock	(no: it was freed)
 *	exporter, freeing: unlock, then look whether anybody has a lock	(yes: keep the memory)
 *
 * cannot both go wrong. Memory that is freed while others have it open stays allocated and charged
 * to the exporter until the last one closes it (vram.c).
 *
 * Who is charged is told by a lock too: whoever can write-lock the bytes that lie SHARE_PAYER
 * behind the memory's. The exporter has that lock as long as it lives. When it is gone, one of the
 * importers gets it, and with it the charge.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum {
	SHARE_E_GONE = 1, /* the exporter or its memory is not there any more */
};

/**
 * struct share_ticket - what an importer has to know; plain bytes, goes through any channel
 * @pid:	the exporter, as its own namespace numbers it
 * @fd:		its file there
 * @inode:	of that file: tells another process or file with these numbers apart
 * @offset:	where the memory is in it
 * @size:	bytes
 * @serial:	different for each allocation of the exporter
 */
struct share_ticket {
	int32_t pid;
	int32_t fd;
	uint64_t inode;
	uint64_t offset;
	uint64_t size;
	uint64_t serial;
};

/* Who pays for device memory. Both may be called from any thread. */
struct share_charge {
	int (*take)(void *arg, uint64_t bytes); /* 0, or another value: not now */
	void (*give)(void *arg, uint64_t bytes);
	void *arg;
};

/** struct share_import - memory of another process that is kept from being freed */
struct share_import {
	int fd; /* to map it with */
	uint64_t offset;
	uint64_t size;

	/* share.c's */
	struct share_charge charge;
	bool is_heir, is_payer;
	struct share_import *next;
};

/**
 * share_own() - be the one who pays for what is in a file, until @ret_owner is closed
 * @fd:		the file, which nobody else has yet
 *
 * Return: 0 or a negative errno.
 */
int share_own(int fd, int *ret_owner);

/**
 * share_export() - let others open a part of a file, until share_unexport()
 *
 * Return: 0 or a negative errno.
 */
int share_export(int fd, uint64_t offset, uint64_t size, uint64_t serial, struct share_ticket *ret);

/** share_unexport() - Return: true if somebody has it open still. */
bool share_unexport(int fd, uint64_t offset, uint64_t size);

/**
 * share_keep() - be told when nobody has a part of a file open any more
 * @done:	called once with @arg, from a thread of this file's
 */
void share_keep(int fd, uint64_t offset, uint64_t size, void (*done)(void *arg), void *arg);

/**
 * share_import() - open what a ticket is about
 *
 * Return: 0, SHARE_E_GONE or a negative errno: -EACCES if the exporter belongs to somebody else.
 */
int share_import(const struct share_ticket *ticket, struct share_import *ret);

/** share_import_through() - the same for a file that came by other means: @ticket's file is @fd */
int share_import_through(int fd, const struct share_ticket *ticket, struct share_import *ret);

/** share_ticket_whole() - a ticket for all of a file, which somebody exports */
int share_ticket_whole(int fd, struct share_ticket *ret);

/**
 * share_inherit() - have this process pay for the memory once its exporter is gone
 * @import:	stays where it is until share_close()
 */
void share_inherit(struct share_import *import, const struct share_charge *charge);

void share_close(struct share_import *import);

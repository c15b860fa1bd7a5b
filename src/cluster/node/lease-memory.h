/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease, and what goes with it, remembered beyond the death of who holds it: in a file, which is
 * replaced whole whenever something is heard.
 *
 * A disk may keep whoever writes waiting for as long as it likes. So nothing is written here but by
 * lease_memory_save(), which needs a copy of the memory and nothing else.
 *
 *	SUM BOOT_ID/NODE RESUMED_MS LINE
 *
 * The times are of a clock that begins with the machine, so they go with the machine's boot: of another one
 * nothing runs any more, and nothing has to be ended. A machine may be several nodes of Slurm, and what was heard
 * of one says nothing of another. A file that is damaged in any way says nothing.
 */
#ifndef CLUSTER_LEASE_MEMORY_H
#define CLUSTER_LEASE_MEMORY_H

#include "cluster/contact-line.h"
#include "cluster/node/node-lease.h"

#define LEASE_WHERE_SIZE 320 /* a boot id, and a name of a node */

/**
 * struct lease_memory - the lease and its file
 * @where:	this node, in this boot
 * @said:	the line that was heard last, "" for none
 * @is_unsaved:	the file does not say it yet
 */
struct lease_memory {
	const char *path;
	char where[LEASE_WHERE_SIZE];
	struct node_lease lease;
	char said[CONTACT_LINE_SIZE];
	bool is_unsaved;
};

/**
 * lease_memory_open() - begin with what the file says
 *
 * Return: 0, also where there is no file, or one of another boot or node; -EBADMSG where it is damaged, or what the
 * kernel said: then nothing is known, and one begins with that.
 */
int lease_memory_open(struct lease_memory *m, const char *path, const char *where, uint64_t now_ms);

/**
 * lease_memory_hear() - a line has come
 *
 * Return: 0; -EINVAL if it is none, or older than another one, or of the future.
 */
int lease_memory_hear(struct lease_memory *m, const char *line, uint64_t now_ms);

/**
 * lease_memory_save() - write the file
 *
 * Return: 0, or what the kernel said: who is started anew then knows what was saved before.
 */
int lease_memory_save(const struct lease_memory *m);

/**
 * lease_memory_look() - node_lease_look(), and what was ordered is remembered
 */
enum node_lease_order lease_memory_look(struct lease_memory *m, uint64_t now_ms,
					uint64_t *ret_wait_ms);

/**
 * lease_memory_kept() - the jobs that Slurm starts nowhere else: "3 7"
 */
const char *lease_memory_kept(const struct lease_memory *m);

/**
 * lease_memory_print() - what is in the file
 *
 * Return: the bytes, which the caller frees; NULL when there is no memory.
 */
char *lease_memory_print(const struct lease_memory *m);

/**
 * lease_memory_parse() - the lease as it was, and the line, from such bytes
 * @where:	this node, in this boot
 * @ret_line:	the part of @bytes that is the line; NULL if the file is of another one
 *
 * Return: 0, or -EBADMSG.
 */
int lease_memory_parse(char *bytes, size_t len, const char *where, struct node_lease *ret,
		       const char **ret_line);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller cannot ask anybody else for: which services there should be. And, for people,
 * which orders it gave. One SQLite file, which the command edits and the controller reads.
 */
#ifndef CLUSTER_STORE_H
#define CLUSTER_STORE_H

#include "cluster/controller/service.h"

struct store;

/**
 * store_open() - open or make the file
 * @ret_reason:	on failure: what SQLite says; the caller frees it
 *
 * Return: 0, -EIO or -ENOMEM.
 */
int store_open(const char *path, struct store **ret, char **ret_reason);

/**
 * store_services() - all services
 */
int store_services(struct store *store, struct services *ret);

/**
 * store_put() - add a service, or change the one of its name; its id is the file's to give
 */
int store_put(struct store *store, const struct service *service);

/**
 * store_remove() - take a service out
 *
 * Return: 1 if there was one, 0 if not, or -EIO.
 */
int store_remove(struct store *store, const char *name);

/**
 * store_note() - write down an order and what came of it; the oldest go when there are many
 */
int store_note(struct store *store, const char *order, const char *instance, uint32_t job,
	       const char *words);

/**
 * store_each_note() - visit the latest orders, oldest first
 */
typedef void (*store_note_fn)(const char *when, const char *order, const char *instance,
			      const char *job, const char *words);
int store_each_note(struct store *store, unsigned n, store_note_fn fn);

/**
 * store_reason() - what SQLite said last
 */
const char *store_reason(const struct store *store);

void store_close(struct store *store);

#endif

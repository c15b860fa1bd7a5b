/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller cannot ask anybody else for: which services there should be, and which of several
 * controllers gives orders. And, for people, which orders it gave and what nodes told it. One SQLite file,
 * of which the command edits the services and shows the rest.
 */
#ifndef CLUSTER_STORE_H
#define CLUSTER_STORE_H

#include "cluster/controller/service.h"
#include "cluster/lease.h"
#include "cluster/report.h"

struct store;

/**
 * store_open() - open or make the file
 * @ret_reason:	on failure: what SQLite says; the caller frees it
 *
 * Return: 0, -EIO or -ENOMEM.
 */
int store_open(const char *path, struct store **ret, char **ret_reason);

/**
 * store_services() - all services; their raises go no further than they may now
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
 * store_raise() - an instance of a service asks for so much from now on; less than before changes nothing
 */
int store_raise(struct store *store, uint32_t service, uint32_t instance, uint64_t memory_mib);

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
 * struct store_node - what a controller last knew of a node, for the command
 * @heard_s:	when it last said something that was taken; 0 for never
 * @refused:	why its latest report was not taken, or ""
 */
struct store_node {
	char name[REPORT_NAME];
	uint64_t heard_s;
	bool is_silent;
	char refused[REPORT_REASON];
};

/**
 * store_set_nodes() - these, and no others; none where no node reports to the controller
 */
int store_set_nodes(struct store *store, const struct store_node *nodes, size_t n);

/**
 * store_nodes() - as they were set last
 * @ret:	the caller frees it
 */
int store_nodes(struct store *store, struct store_node **ret, size_t *ret_n);

/**
 * struct store_incident - an over-use, and where
 */
struct store_incident {
	char node[REPORT_NAME];
	struct report_incident incident;
};

/**
 * store_put_incidents() - write them down, or what has changed of them; the oldest of a node go when it has many
 */
int store_put_incidents(struct store *store, const struct store_incident *incidents, size_t n);

/**
 * store_each_incident() - visit the latest, oldest first
 */
typedef void (*store_incident_fn)(const struct store_incident *incident);
int store_each_incident(struct store *store, unsigned n, store_incident_fn fn);

/**
 * store_read_lease() - who of several controllers gives the orders
 */
int store_read_lease(struct store *store, struct lease_row *ret);

/**
 * store_write_lease() - change that, if it is still as it was read
 *
 * Return: 1 if it was, 0 if not, or -EIO.
 */
int store_write_lease(struct store *store, const struct lease_row *read,
		      const struct lease_row *row);

/**
 * store_reason() - what SQLite said last
 */
const char *store_reason(const struct store *store);

void store_close(struct store *store);

#endif

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The settings from the command line.
 */
#ifndef SYSE_SETTINGS_H
#define SYSE_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "assets.h"

/* What a front end serves. Each has requests of its own; logging in is the same. */
enum service {
	SERVE_SEARCH = 1 << 0,
	SERVE_SUPPORT = 1 << 1,
	SERVE_INTERESTS = 1 << 2,
	SERVE_ALL = SERVE_SEARCH | SERVE_SUPPORT | SERVE_INTERESTS
};

/* Faults of a service, to see that they are stopped. */
enum fault {
	FAULT_NONE,
	/* Of the support: */
	FAULT_SKIP_ENTRY,  /* reads without an entry */
	FAULT_FORGE_ENTRY, /* writes the entry in another's name */
	FAULT_DATE_AHEAD,  /* writes an entry of an hour from now */
	/* Of the interests: */
	FAULT_QUERY_AS_TOPIC /* writes the newest query as a topic */
};

struct settings {
	enum service service;
	enum fault fault;
	struct asset_sources assets;
	const char *keys;            /* path, NULL when not given; mode baseline only */
	const char *keyvalue_socket; /* path, NULL when not given; mode baseline only */
	bool single_session;         /* a worker ends after a session in mode baseline, too */
	uint32_t workers;            /* 1..32: one per slot; not on demand */
	uint32_t results;            /* results of a search without n */
	/* In milliseconds: */
	int login_timeout;   /* until the next request while nobody is logged in */
	int idle_timeout;    /* until the next request of a logged-in user */
	int request_timeout; /* from a request's first byte to its last */
	int answer_timeout;  /* for the search engine and for the key-value store */
};

#endif

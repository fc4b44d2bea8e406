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
	SERVE_ALL = SERVE_SEARCH | SERVE_SUPPORT
};

/* Faults of the support's front end, to see that they are stopped. */
enum support_fault {
	SUPPORT_CORRECT,
	SUPPORT_OMITS,      /* reads without an entry */
	SUPPORT_FORGES,     /* writes the entry in another's name */
	SUPPORT_DATES_AHEAD /* writes an entry of an hour from now */
};

struct settings {
	enum service service;
	enum support_fault support_fault;
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

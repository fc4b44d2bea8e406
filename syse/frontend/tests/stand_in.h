/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Stands in for libshai in test programs: a session over a socket pair, with a
 * search engine that always finds the same documents and a key-value store whose
 * replies are written beforehand. Nothing is confined.
 */
#ifndef SYSE_TESTS_STAND_IN_H
#define SYSE_TESTS_STAND_IN_H

#include <stdbool.h>
#include <stddef.h>

#include "shai.h"

/* The answers of the stand-in; set before use. */
struct stand_in {
	enum shai_mode mode;
	bool refuse_login;            /* shai_authenticate fails with EACCES */
	int receive_error;            /* errno of shai_channel_receive; 0 for none */
	const int *forks;             /* what shai_fork_worker returns next; an errno is negative */
	const char *const *documents; /* whole files, best first; NULL-terminated */
	uint32_t withheld;
	const char *replies; /* of the key-value store, again and again; NULL: those to queries */
	int write_error;     /* errno of shai_write; 0 for none */
	char written[2048];  /* what shai_write was given, after the conduit and a space */
	uint32_t written_flags;
	bool open_needs_entry; /* shai_open opens nothing before shai_write has succeeded */
	unsigned opens;        /* calls of shai_open */
	const char *opened;    /* the file that shai_open opens */
	const struct shai_offer *offer; /* of shai_choices; NULL: nothing may be chosen */
	int choose_error;               /* errno of shai_choose; 0 for none */
	char chosen[2048]; /* number, policy and signature that shai_choose was given */
};
extern struct stand_in stand_in;

/*
 * Makes *session one that is connected, or bound; returns the client's end of the
 * connection. Query lines can be read from *queries.
 */
int stand_in_session(struct shai_session *session, bool bound, int *queries);

/* Closes what stand_in_session has opened, except the client's end and *queries. */
void stand_in_end(struct shai_session *session);

#endif

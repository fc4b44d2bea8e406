/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A redirected call of a session in a context: its arguments are numbers and
 * addresses of the session, which is standing still meanwhile.
 */
#ifndef SHAI_REDIRECTED_H
#define SHAI_REDIRECTED_H

#include "lwc.h"
#include "stub.h"

/* What connects the stub with its sessions; all numbers are the stub's. */
struct context_links {
	int mailbox;     /* records: the stub's end */
	int session_end; /* the session's end; there it is SHAI_FD_MONITOR, for receiving only */
	int mover;       /* descriptors: the stub's end of what is SHAI_FD_DELIVERY there */
	int from_memory; /* a pipe through which the session's memory is read */
	int into_pipe;
	bool broken; /* the mailbox has ended: no more sessions */
};

/*
 * Does what a redirected call asks for and makes the answer to it: a result, or an
 * errno, which is the call's own where nothing can be done about it.
 */
enum stub_outcome redirected_answer(struct stub *stub, struct context_links *links,
    const struct lwc_event *event, struct lwc_message *answer);

/* Forgets what went through; for between sessions. */
void redirected_drain(const struct context_links *links);

#endif

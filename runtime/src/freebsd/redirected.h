/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A redirected call of a session in a context. Its arguments are numbers and
 * addresses of the session, which is suspended during the call.
 */
#ifndef SHAI_REDIRECTED_H
#define SHAI_REDIRECTED_H

#include "lwc.h"
#include "stub.h"

/* Connects the stub with its sessions. All numbers are the stub's. */
struct context_links {
	int mailbox;     /* records: the stub's end */
	int session_end; /* the session's end; there it is SHAI_FD_MONITOR, for receiving only */
	int mover;       /* descriptors: the stub's end of what is SHAI_FD_DELIVERY there */
	int from_memory; /* a pipe through which the session's memory is read */
	int into_pipe;
	bool broken; /* the mailbox has ended: no more sessions */
};

/*
 * Executes a redirected call and makes its answer: a result or an errno. If nothing
 * can be done for the call, the errno is the call's own.
 */
enum stub_outcome redirected_answer(struct stub *stub, struct context_links *links,
    const struct lwc_event *event, struct lwc_message *answer);

/* Discards data in the links, between sessions. */
void redirected_drain(const struct context_links *links);

#endif

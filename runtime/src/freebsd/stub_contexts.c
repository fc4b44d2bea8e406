/* SPDX-License-Identifier: BSD-2-Clause
 *
 * With shai.ko: the stub and its sessions are contexts of one process. The stub makes a
 * snapshot once. Every session is a copy of it, which is discarded when the session is
 * over. Calls that the kernel refuses to a session are redirected to the stub. They
 * communicate in no other way: no call of the stub waits for a session.
 *
 * Signals that others have sent to the process would reach the next session, so they are
 * discarded. Sessions themselves can leave none, and no timers: the module sends such
 * calls here, and they are refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "contexts.h"
#include "redirected.h"
#include "stub_rights.h"
#include "stub_session.h"
#include "stub_transports.h"

bool
stub_has_contexts(void)
{
	return contexts_find();
}

static int
connect_records(struct context_links *links)
{
	int ends[2];

	if (stub_make_mailbox(ends) != 0)
		return -1;
	links->mailbox = ends[0];
	links->session_end = ends[1];
	if (dup2(ends[1], SHAI_FD_MONITOR) < 0)
		return -1;
	return stub_for_answers(SHAI_FD_MONITOR);
}

static int
connect_descriptors(struct context_links *links)
{
	int ends[2], moved;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	links->mover = ends[0];
	moved = dup2(ends[1], SHAI_FD_DELIVERY);
	(void)close(ends[1]);
	return moved;
}

static int
connect_links(struct context_links *links)
{
	int ends[2];

	*links = (struct context_links){.broken = false};
	if (connect_records(links) < 0 || connect_descriptors(links) < 0 ||
	    pipe2(ends, O_CLOEXEC) != 0)
		return -1;
	links->from_memory = ends[0];
	links->into_pipe = ends[1];
	return 0;
}

/*
 * Copies this process, except for the stub's descriptors. Returns the snapshot's
 * descriptor, or -1 in a copy, that is, in a session.
 */
static int
make_snapshot(const struct stub *stub, const struct context_links *links)
{
	const int ours[] = {stub->requests, links->mailbox, links->session_end, links->mover,
	    links->from_memory, links->into_pipe};
	struct lwc_descriptors omitted[sizeof(ours) / sizeof(ours[0])];
	struct lwc_spec spec = {.version = LWC_VERSION,
	    .flags = LWC_MONITORED | LWC_CAPABILITY_MODE,
	    .source = LWC_SELF,
	    .monitor = LWC_SELF,
	    .descriptors = omitted,
	    .descriptor_count = sizeof(ours) / sizeof(ours[0])};
	struct lwc_event event;

	memset(omitted, 0, sizeof(omitted));
	for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
		omitted[i].first = omitted[i].last = ours[i];
		omitted[i].mode = LWC_OMIT;
	}
	if (lwc_create(&spec, &event) != 0)
		stub_give_up("snapshot");
	return event.kind == LWC_EVENT_CREATED ? event.descriptor : -1;
}

/* Makes a copy of the snapshot for a session. */
static int
copy_snapshot(int snapshot)
{
	const struct lwc_spec spec = {.version = LWC_VERSION, .source = snapshot};
	struct lwc_event event;

	if (lwc_create(&spec, &event) != 0)
		stub_give_up("session");
	return event.descriptor;
}

/* Runs a session until it is over. */
static void
serve(struct stub *stub, struct context_links *links, int session)
{
	struct lwc_message message = {0};
	struct lwc_event event;

	do {
		if (lwc_switch(session, &message, &event) != 0 ||
		    event.kind != LWC_EVENT_REDIRECTED)
			stub_give_up("switch to a session");
	} while (redirected_answer(stub, links, &event, &message) != STUB_OVER);
}

/*
 * Discards pending signals, which are all blocked here. Signals that ask the worker
 * to end are kept, since they are not meant for the session.
 */
static void
discard_signals(void)
{
	static const int kept[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT};
	const struct timespec now = {0, 0};
	sigset_t discarded;

	(void)sigfillset(&discarded);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		(void)sigdelset(&discarded, kept[i]);
	while (sigtimedwait(&discarded, NULL, &now) > 0)
		continue;
}

void
stub_run_contexts(struct stub *stub)
{
	static struct context_links links;
	sigset_t signals;
	int snapshot;

	if (connect_links(&links) != 0)
		stub_give_up("links to sessions");
	snapshot = make_snapshot(stub, &links);
	if (snapshot < 0) {
		if (stub_reopen_files(&stub->files) != 0)
			stub_give_up("files of a session");
		return;
	}
	stub_block_signals(&signals);
	while (!links.broken) {
		int session = copy_snapshot(snapshot);

		serve(stub, &links, session);
		(void)close(session);
		discard_signals();
		redirected_drain(&links);
		(void)stub_end_session(stub);
	}
	/* What the monitor has ended, the zygote begins anew. */
	_exit(0);
}

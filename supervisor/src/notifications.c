/* SPDX-License-Identifier: BSD-2-Clause */
#include "notifications.h"

#include <asm/unistd.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "monitor.h"
#include "reuse.h"
#include "shai_rollback.h"
#include "workers.h"

/*
 * The only flags of a worker's fork. It shares nothing with the zygote, and is this
 * process's child (CLONE_PARENT), so the zygote does not learn how it ends. With
 * CLONE_PARENT the kernel ignores the exit signal.
 */
#define FORK_NEEDED CLONE_PARENT
#define FORK_ALLOWED                                                                               \
	(CLONE_PARENT | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD)

/* Linux 6.6; a kernel without it is only slower. */
#define SET_FLAGS SECCOMP_IOW(4, uint64_t)
#define SYNCHRONOUS_WAKE_UP 1ul

static int
listener_call(struct supervisor *s, unsigned long request, void *structure)
{
	int result;

	do
		result = ioctl(s->listener.descriptor, request, structure);
	while (result < 0 && errno == EINTR);
	return result;
}

int
notification_continue(struct supervisor *s, uint64_t id)
{
	struct seccomp_notif_resp answer = {.id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};

	return listener_call(s, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

void
notification_fail(struct supervisor *s, uint64_t id, int error)
{
	struct seccomp_notif_resp answer = {.id = id, .error = -error};

	(void)listener_call(s, SECCOMP_IOCTL_NOTIF_SEND, &answer);
}

int
notification_place(struct supervisor *s, uint64_t id, int file, int number, bool last)
{
	struct seccomp_notif_addfd place = {.id = id,
	    .flags = SECCOMP_ADDFD_FLAG_SETFD | (last ? SECCOMP_ADDFD_FLAG_SEND : 0),
	    .srcfd = (uint32_t)file,
	    .newfd = (uint32_t)number};

	return listener_call(s, SECCOMP_IOCTL_NOTIF_ADDFD, &place) < 0 ? -1 : 0;
}

void
notifications_release_fork(struct supervisor *s)
{
	if (s->fork_waiting != 0)
		notification_fail(s, s->fork_waiting, EINTR);
	s->fork_waiting = 0;
}

/* The monitor answers. It is the only one that refuses with a reason, and records it. */
static void
forward(struct supervisor *s, const struct seccomp_notif *call, const struct worker *worker)
{
	struct shai_control_notification record = {
	    .header = monitor_header(SHAI_CONTROL_NOTIFICATION, sizeof(record)),
	    .session = worker != NULL && worker->session != NULL ? worker->session->id : 0,
	    .notification = *call};

	if (monitor_send(s, &record, sizeof(record), -1) != 0)
		notification_fail(s, call->id, EACCES);
}

static bool
is_fork(const struct supervisor *s, const struct seccomp_notif *call)
{
	uint64_t flags = call->data.args[0];

	return call->data.nr == __NR_clone && call->pid == (uint32_t)s->zygote &&
	       (flags & ~(uint64_t)FORK_ALLOWED) == 0 && (flags & FORK_NEEDED) == FORK_NEEDED;
}

/* Whether a worker waits for a session. One that is sealed does it in the roll-back code only. */
static bool
is_accept(const struct worker *worker, const struct seccomp_notif *call)
{
	const uint64_t code = SHAI_ROLLBACK_CODE + SHAI_ROLLBACK_ACCEPTED;

	if (worker == NULL || (uint32_t)call->data.args[0] != SHAI_FD_LISTEN)
		return false;
	if (worker->sealed)
		return call->data.nr == __NR_accept4 && call->data.instruction_pointer == code;
	return (call->data.nr == __NR_accept4 || call->data.nr == __NR_accept) &&
	       worker->state == WORKER_BORN;
}

/* Whether a worker that is to be sealed asks for the grant by which it reads its channel. */
static bool
is_grant(const struct worker *worker, const struct seccomp_notif *call)
{
	return worker != NULL && worker->state == WORKER_BORN && !worker->sealed &&
	       worker->grant == NULL && call->data.nr == __NR_accept4 &&
	       (uint32_t)call->data.args[0] == SHAI_FD_GRANT;
}

static void
give_grant(struct supervisor *s, struct worker *worker, uint64_t call)
{
	int file = gate_new(&worker->grant);

	if (file < 0 || notification_place(s, call, file, SHAI_FD_GRANT, true) != 0)
		notification_fail(s, call, ENOMEM);
	if (file >= 0)
		(void)close(file);
}

static void
answer(struct supervisor *s, const struct seccomp_notif *call)
{
	struct worker *worker = workers_caller(s, (pid_t)call->pid);

	if (call->data.arch != AUDIT_ARCH_X86_64) {
		forward(s, call, worker);
	} else if (is_fork(s, call) && s->terminating) {
		notification_fail(s, call->id, EINTR);
	} else if (is_fork(s, call) && workers_zygote_is_clean()) {
		s->fork_waiting = call->id;
	} else if (is_accept(worker, call)) {
		reuse_waits(s, worker, call->id);
	} else if (is_grant(worker, call)) {
		give_grant(s, worker, call->id);
	} else {
		if (worker != NULL && call->data.nr == __NR_seccomp)
			worker->sealing = call->id;
		forward(s, call, worker);
	}
}

static void
listener_ready(struct source *source, uint32_t events)
{
	struct supervisor *s = source->owner;
	union {
		struct seccomp_notif call;
		char room[256]; /* the kernel's structure may grow; it has to be zero */
	} received;

	if ((events & EPOLLIN) != 0) {
		memset(&received, 0, sizeof(received));
		/* ENOENT: the caller has died since. */
		if (listener_call(s, SECCOMP_IOCTL_NOTIF_RECV, &received) == 0)
			answer(s, &received.call);
	} else if ((events & EPOLLHUP) != 0) {
		loop_forget(source); /* no process of the task is left */
	}
	/* EPOLLERR alone: a signal has interrupted the kernel's look at the listener. */
}

int
notifications_begin(struct supervisor *s, int listener)
{
	if (loop_watch(&s->listener, listener, EPOLLIN) != 0)
		return -1;
	s->listener.owner = s;
	s->listener.ready = listener_ready;
	(void)ioctl(listener, SET_FLAGS, SYNCHRONOUS_WAKE_UP);
	return 0;
}

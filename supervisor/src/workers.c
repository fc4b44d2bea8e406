/* SPDX-License-Identifier: BSD-2-Clause */
#include "workers.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"
#include "notifications.h"
#include "sessions.h"
#include "slots.h"
#include "text.h"
#include "transfers.h"
#include "worker_messages.h"

#define BACK_OFF_FIRST (20 * MILLISECOND)
#define BACK_OFF_MAX (5 * SECOND)
#define UNSEEN SECOND /* after this time it is asked whether a fork has failed */

static int zygote_descriptors = -1; /* /proc/PID/fd, its size is their number (Linux 6.2) */
static int children = -1;           /* /proc/self/task/PID/children */

const char *
workers_open(pid_t zygote)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/fd", zygote);
	zygote_descriptors = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (zygote_descriptors < 0)
		return "find the launcher in /proc";
	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	children = open(path, O_RDONLY | O_CLOEXEC);
	return children < 0 ? "open the list of its children" : NULL;
}

void
worker_become(struct supervisor *s, struct worker *worker, enum worker_state state)
{
	if (worker->state != WORKER_NONE)
		s->workers[worker->state]--;
	if (state != WORKER_NONE)
		s->workers[state]++;
	worker->state = state;
}

void
worker_dismiss(struct supervisor *s, struct worker *worker)
{
	worker->dismissed = true;
	worker_become(s, worker, WORKER_REFUSED);
	(void)kill(worker->pid, SIGKILL);
}

int
worker_connection(enum shai_mode mode)
{
	return shai_mode_is_dynamic(mode) ? SHAI_FD_CONNECTION_CHECKED : SHAI_FD_CONNECTION;
}

struct session *
worker_session(struct supervisor *s, const struct worker *worker)
{
	return &s->session[worker - s->worker];
}

struct worker *
workers_ready(struct supervisor *s)
{
	if (s->workers[WORKER_IDLE] == 0)
		return NULL;
	for (uint32_t i = 0; i < s->settings.slots; i++)
		if (s->worker[i].state == WORKER_IDLE && slot_is_free(s, i))
			return &s->worker[i];
	return NULL;
}

/* An entry for a new worker, whose slot is free if possible; NULL if all are in use. */
static struct worker *
unused(struct supervisor *s)
{
	struct worker *other = NULL;

	for (uint32_t i = 0; i < s->settings.slots; i++) {
		if (s->worker[i].state != WORKER_NONE)
			continue;
		if (slot_is_free(s, i))
			return &s->worker[i];
		other = &s->worker[i];
	}
	return other;
}

struct worker *
workers_known(struct supervisor *s, pid_t pid)
{
	for (uint32_t i = 0; i < s->settings.slots; i++)
		if (s->worker[i].state != WORKER_NONE && s->worker[i].pid == pid)
			return &s->worker[i];
	return NULL;
}

struct worker *
workers_caller(struct supervisor *s, pid_t pid)
{
	struct worker *worker = workers_known(s, pid);
	siginfo_t ended;

	if (worker != NULL || pid == s->zygote ||
	    waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) != 0)
		return worker;
	worker = unused(s);
	if (worker == NULL)
		return NULL; /* more than were permitted */
	*worker = (struct worker){.state = WORKER_NONE, .pid = pid};
	worker_become(s, worker, WORKER_BORN);
	if (s->unseen > 0)
		s->unseen--;
	return worker;
}

bool
workers_zygote_is_clean(void)
{
	struct stat descriptors;

	return fstat(zygote_descriptors, &descriptors) == 0 &&
	       descriptors.st_size == SHAI_FD_RESERVED_END;
}

static uint32_t
workers_alive(const struct supervisor *s)
{
	uint32_t count = 0;

	for (enum worker_state state = WORKER_BORN; state < WORKER_STATES; state++)
		count += s->workers[state];
	return count;
}

/* Corrects unseen: a fork that was permitted may have failed. */
static void
count_unseen(struct supervisor *s)
{
	uint32_t count = 0, expected = workers_alive(s) + !s->zygote_ended;
	char list[4096];
	off_t offset = 0;
	ssize_t length;

	while ((length = pread(children, list, sizeof(list), offset)) > 0) {
		offset += length;
		for (ssize_t i = 0; i < length; i++)
			count += list[i] == ' '; /* one after each number */
	}
	s->unseen = count > expected ? count - expected : 0;
}

uint32_t
workers_waiting(const struct supervisor *s)
{
	return s->workers[WORKER_BORN] + s->workers[WORKER_IDLE] + s->workers[WORKER_RETURNING] +
	       s->workers[WORKER_COMPARED] + s->unseen;
}

/* Whether the task's limits leave room for one worker more, and few enough wait. */
static bool
is_wanted(const struct supervisor *s)
{
	return workers_alive(s) + s->unseen < s->settings.slots &&
	       workers_waiting(s) < s->settings.idle_max;
}

/*
 * Takes the roll-back code from the zygote once a worker was not sealed: its copies would be
 * refused for the same reason, after they have copied all of their memory for it.
 */
static void
withdraw_code(struct supervisor *s)
{
	if (s->refused_seal &&
	    notification_place(s, s->fork_waiting, s->silence, SHAI_FD_ROLLBACK, false) == 0)
		s->refused_seal = false;
}

int64_t
workers_fork(struct supervisor *s)
{
	int64_t now = loop_now();

	if (s->fork_waiting == 0 || !s->configured || s->terminating || s->lost)
		return INT64_MAX;
	/* The zygote asks for the next fork, so the last one has happened, or has failed. */
	if (s->unseen > 0 && now >= s->forked + UNSEEN) {
		count_unseen(s);
		s->forked = now;
	}
	if (!is_wanted(s))
		return s->unseen > 0 ? s->forked + UNSEEN : INT64_MAX;
	if (now < s->fork_after)
		return s->fork_after;
	withdraw_code(s);
	if (notification_continue(s, s->fork_waiting) == 0) {
		s->unseen++;
		s->forked = now;
	}
	s->fork_waiting = 0;
	return INT64_MAX;
}

void
workers_back_off(struct supervisor *s, bool failing)
{
	if (!failing) {
		s->back_off = 0;
		return;
	}
	s->back_off = s->back_off == 0 ? BACK_OFF_FIRST : 2 * s->back_off;
	if (s->back_off > BACK_OFF_MAX)
		s->back_off = BACK_OFF_MAX;
	s->fork_after = loop_now() + s->back_off;
}

static void
describe(const siginfo_t *ended, char reason[SHAI_REASON_MAX])
{
	if (ended->si_code == CLD_EXITED)
		(void)snprintf(
		    reason, SHAI_REASON_MAX, "the worker exited with status %d", ended->si_status);
	else
		(void)snprintf(reason, SHAI_REASON_MAX, "the worker was killed by signal %d",
		    ended->si_status);
}

static void
forget(struct supervisor *s, struct worker *worker)
{
	gate_free(worker->grant);
	worker->grant = NULL;
	s->sealed -= worker->sealed;
	transfers_take_back(&s->slot[worker - s->worker]);
	worker_become(s, worker, WORKER_NONE);
}

static void
worker_ended(struct supervisor *s, const siginfo_t *ended)
{
	struct worker *worker = workers_known(s, ended->si_pid);
	char reason[SHAI_REASON_MAX];

	describe(ended, reason);
	if (worker != NULL && worker->session != NULL) {
		struct session *session = worker->session;

		worker_messages_finish(s, session);
		workers_back_off(s, false);
		session_over(s, session, reason, 0);
	} else if (!s->zygote_ended && !s->lost && (worker == NULL || !worker->dismissed)) {
		struct shai_control_event *event = events_add(SHAI_EVENT_WORKER);

		event->worker = ended->si_pid;
		text_copy(event->reason, sizeof(event->reason), reason);
		/* One that has had sessions may have been brought to it by a client. */
		if (worker == NULL || worker->sessions == 0)
			workers_back_off(s, true);
	}
	if (worker != NULL)
		forget(s, worker);
	else if (s->unseen > 0)
		s->unseen--;
}

static uint32_t
status_of(const siginfo_t *ended)
{
	if (ended->si_code == CLD_EXITED)
		return ((uint32_t)ended->si_status & 0xff) << 8;
	return (uint32_t)ended->si_status | (ended->si_code == CLD_DUMPED ? 0x80u : 0);
}

bool
workers_reap(struct supervisor *s)
{
	siginfo_t ended;

	for (;;) {
		memset(&ended, 0, sizeof(ended));
		if (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0)
			return false; /* ECHILD */
		if (ended.si_pid == 0)
			return true;
		if (ended.si_pid == s->zygote) {
			workers_kill_all(
			    s); /* its number is that of the group until it is reaped */
			s->zygote_ended = true;
			s->zygote_status = status_of(&ended);
		} else {
			worker_ended(s, &ended);
		}
		(void)waitid(P_PID, (id_t)ended.si_pid, &ended, WEXITED | WNOHANG);
	}
}

void
workers_kill_all(struct supervisor *s)
{
	/*
	 * The launcher leads the group, which the filter keeps the task's processes in, once it
	 * has made it. A fork that is under way belongs to it, or fails because of the signal.
	 */
	if (!s->zygote_ended) {
		(void)kill(s->zygote, SIGKILL);
		(void)kill(-s->zygote, SIGKILL);
	}
	for (uint32_t i = 0; i < s->settings.slots; i++)
		if (s->worker[i].state != WORKER_NONE)
			(void)kill(s->worker[i].pid, SIGKILL);
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The supervisor of one task with sessions: parent of its program and of its workers.
 *
 * Usage: shai-supervisor PROGRAM COUNT
 *   PROGRAM  the monitor's program, which it starts as the launcher
 *   COUNT    the number of the task's descriptors, from LAUNCH_FIRST_FD on
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connections.h"
#include "control.h"
#include "events.h"
#include "launch.h"
#include "lockdown.h"
#include "monitor.h"
#include "mounts.h"
#include "notifications.h"
#include "reuse.h"
#include "rollback.h"
#include "sessions.h"
#include "slots.h"
#include "transfers.h"
#include "workers.h"

#define STATUS_FD 200 /* above the descriptors of this process */

static struct supervisor supervisor;

static void
signal_ready(struct source *source, uint32_t events)
{
	struct supervisor *s = source->owner;
	struct signalfd_siginfo pending[8];

	(void)events;
	/* How many children ended the reaping finds out. Other signals are to be ignored. */
	while (read(source->descriptor, pending, sizeof(pending)) > 0)
		;
	s->childless = !workers_reap(s);
}

/* The launcher's one message brings the listener. A launcher without a filter sends none. */
static void
launcher_ready(struct source *source, uint32_t events)
{
	struct supervisor *s = source->owner;
	struct descriptors received;
	char message[256];
	struct shai_control_header record = monitor_header(SHAI_CONTROL_LISTENER, sizeof(record));
	ssize_t length = packet_receive(source->descriptor, message, sizeof(message), &received);

	(void)events;
	if (length < 0 && errno == EAGAIN)
		return;
	if (length > 0 && received.count == 1 &&
	    monitor_send(s, &record, sizeof(record), received.number[0]) == 0 &&
	    notifications_begin(s, received.number[0]) == 0)
		(void)descriptors_take(&received, 0);
	else if (length > 0)
		workers_kill_all(s); /* nobody would answer the task */
	descriptors_close(&received);
	loop_forget(source);
}

/* All signals are read, none is delivered: a delivered one could interrupt an answer. */
static const char *
take_signals(struct supervisor *s)
{
	sigset_t all;
	int descriptor;

	(void)sigfillset(&all);
	if (sigprocmask(SIG_SETMASK, &all, NULL) != 0)
		return "block signals";
	descriptor = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	s->signals.owner = s;
	s->signals.ready = signal_ready;
	if (descriptor < 0 || loop_watch(&s->signals, descriptor, EPOLLIN) != 0)
		return "watch signals";
	return NULL;
}

static const char *
start(struct supervisor *s, const char *program, int count)
{
	struct shai_control_started record = {
	    .header = monitor_header(SHAI_CONTROL_STARTED, sizeof(record))};
	struct launch launch;
	const char *problem;
	int code;

	if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0)
		return "become the parent of the task's orphans";
	if (loop_open() != 0)
		return "make an epoll instance";
	if (sodium_init() < 0)
		return "prepare cryptography";
	s->silence = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (s->silence < 0)
		return "open the null device";
	code = rollback_open();
	if (code < 0)
		return "make the file of the roll-back code";
	problem = take_signals(s);
	if (problem == NULL)
		problem = launch_start(program, count, code, &launch);
	if (problem != NULL)
		return problem;
	s->zygote = launch.pid;
	s->files_max = launch.files_max;
	s->launcher.owner = s;
	s->launcher.ready = launcher_ready;
	record.pid = launch.pid;
	if (loop_watch(&s->launcher, launch.control, EPOLLIN) != 0)
		return "watch the launcher";
	if (control_begin(s, SHAI_CONTROL_FD) != 0 ||
	    monitor_send(s, &record, sizeof(record), code) != 0)
		return "talk to the monitor";
	(void)close(code);
	return workers_open(launch.pid);
}

/* A socket that holds many records, no output. */
static void
take_room(void)
{
	int size = 1 << 20;

	if (setsockopt(SHAI_CONTROL_FD, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) != 0)
		(void)setsockopt(SHAI_CONTROL_FD, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	/* The task's output must end with the task. */
	(void)dup2(STDIN_FILENO, STDOUT_FILENO);
	(void)dup2(STDIN_FILENO, STDERR_FILENO);
}

/* Runs until no process of the task is left. */
static void
run(struct supervisor *s)
{
	while (!s->childless) {
		int64_t next = sessions_tend(s), other = connections_tend(s);

		next = other < next ? other : next;
		other = transfers_tend(s);
		next = other < next ? other : next;
		other = reuse_tend(s);
		next = other < next ? other : next;
		other = workers_fork(s);
		next = other < next ? other : next;
		other = monitor_report(s);
		loop_turn(other < next ? other : next);
	}
}

/* Tells the monitor what is left, and how the program ended. It may not be reading now. */
static void
tell_ended(struct supervisor *s)
{
	const struct shai_control_ended record = {
	    .header = monitor_header(SHAI_CONTROL_ENDED, sizeof(record)),
	    .status = s->zygote_status};

	while ((monitor_tell_counts(s) != 0 || monitor_send(s, &record, sizeof(record), -1) != 0) &&
	       s->full && !s->lost)
		loop_turn(INT64_MAX);
}

/* No session is left. */
static void
free_tables(struct supervisor *s)
{
	for (uint32_t i = 0; i < s->settings.slots; i++)
		keyvalue_free(s->slot[i].store);
	mounts_free(s->mounts);
	regions_free(&s->regions);
	sets_free(&s->sets);
	keys_free(&s->keys);
}

static int
give_up(int status, const char *problem)
{
	(void)dprintf(status, "supervisor: %s: %m", problem);
	return 127;
}

int
main(int count, char **arguments)
{
	struct supervisor *s = &supervisor;
	int status = fcntl(LAUNCH_STATUS_FD, F_DUPFD_CLOEXEC, STATUS_FD);
	const char *problem;

	if (count != 3)
		return give_up(status, "expects a program and a number of descriptors");
	s->control.descriptor = s->launcher.descriptor = s->listener.descriptor = -1;
	s->signals.descriptor = s->connections.descriptor = -1;
	TAILQ_INIT(&s->unsettled);
	problem = start(s, arguments[1], atoi(arguments[2]));
	if (problem == NULL) {
		take_room();
		problem = mounts_separate();
	}
	if (problem == NULL)
		problem = lockdown();
	if (problem != NULL)
		return give_up(status, problem); /* the launcher dies with this process */
	(void)close(status);
	run(s);
	tell_ended(s);
	free_tables(s);
	return 0;
}

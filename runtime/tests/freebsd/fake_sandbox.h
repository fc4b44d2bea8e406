/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Sandbox and monitor of one task for tests on FreeBSD, in the process that has
 * forked the task. It answers the requests of the task and its workers while it talks
 * to the user's end of a connection.
 */
#ifndef SHAI_TESTS_FAKE_SANDBOX_H
#define SHAI_TESTS_FAKE_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#include "requests.h"

/* Ends the program when a condition does not hold. */
#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "%s:%d: not so: %s (errno %d)\n", __FILE__,          \
			    __LINE__, #condition, errno);                                          \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define FAKE_WRITABLE 17 /* number of a directory that the task may write in */
#define FAKE_PREFIX "/task/view"
#define FAKE_WRITABLE_PREFIX "/task/data"

struct fake_sandbox {
	char directory[32]; /* view/, data/, allowed, secret */
	pid_t task;
	int requests;
	int task_monitor; /* the zygote's */
	enum shai_mode mode;
	bool may_write; /* what SHAI_REQUEST_SEND is answered */

	/* Of the session; -1 while there is none. */
	int waiting; /* reply socket of a worker that waits for a user */
	uint64_t waiting_sequence;
	int reply;
	int monitor;
	int client;
	int channel;
	int connection; /* for duplicates that may be written to */

	/* The number of requests. */
	unsigned paths, sends, opens, resets, workers;
};

/* The task's program, in capability mode and with the library prepared. */
typedef int fake_task(void);

/* Makes files and descriptors and starts the task. */
void fake_start(struct fake_sandbox *fake, fake_task *task, enum shai_mode mode);

/* Serves requests until the task has ended; returns its wait status. */
int fake_wait(struct fake_sandbox *fake);

/* Kills the task and what it left, and removes the files. */
void fake_stop(struct fake_sandbox *fake);

/* Waits for an idle worker and gives it a user. */
void fake_user(struct fake_sandbox *fake);

/*
 * Sends a line to the session and returns its answer, which is valid until the next
 * call. Returns "" if the session closed the connection instead. Serves requests in
 * the meantime.
 */
const char *fake_say(struct fake_sandbox *fake, const char *line);

/*
 * Waits until the stub says that the session is over, and forgets it. The session's
 * descriptors must be closed by then, unless its process was killed.
 */
void fake_session_over(struct fake_sandbox *fake, bool killed);

/* Ends the session from the sandbox's side. */
void fake_end_session(struct fake_sandbox *fake);

/* Sends bytes on the session's channel. */
void fake_channel_send(struct fake_sandbox *fake, const void *bytes, size_t length);

#endif

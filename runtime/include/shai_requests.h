/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Requests that replace the kernel's notifications on systems that have none: a task asks
 * its sandbox for actions that the kernel has refused, and a session asks its stub, which
 * stands between it and the monitor. Records are as in shai_wire.h.
 *
 * Requests go over SHAI_FD_REQUESTS, which all processes of a task share. Each record
 * carries the socket for its answer (SOCK_SEQPACKET, one SCM_RIGHTS descriptor), so that
 * threads and processes never see each other's answers. The process that sends the record
 * is the one that asks.
 *
 * A worker has two halves. The session serves the user and holds the descriptors that the
 * user may have. The stub holds those that the session may have on demand: the monitor's
 * socket, the view, the reading end of the channel, the decisions. The session sends every
 * record on SHAI_FD_MONITOR to the stub. The stub answers those of enum shai_stub_type and
 * of enum shai_request_type, and passes the others on. It answers there, or on the socket
 * that a record carries. With shai.ko both halves are contexts of one process, without it
 * they are two processes; the session cannot tell the difference.
 */
#ifndef SHAI_REQUESTS_H
#define SHAI_REQUESTS_H

#include "shai_wire.h"

#define SHAI_FD_REQUESTS 10 /* requests to the sandbox; not held by a session */
#define SHAI_FD_DELIVERY 11 /* the stub moves a session's descriptors over it, with contexts */

#define SHAI_REQUEST_PATH_MAX 1024 /* with NUL */
#define SHAI_STUB_WRITE_MAX 32768  /* bytes of one checked write */

enum shai_request_type {
	/*
	 * Header only: a worker is idle. Once there is a user, the answer is
	 * SHAI_PLACED. The socket then stays open as long as the session: when either
	 * side closes its end, the session ends.
	 */
	SHAI_REQUEST_SESSION = 16,
	SHAI_REQUEST_PATH = 17, /* shai_request_path -> SHAI_ANSWER, with a descriptor */
	SHAI_REQUEST_SEND = 18, /* shai_request_send -> SHAI_ANSWER: may the task write to this? */
	/*
	 * Header only -> SHAI_ANSWER: the process has a handler for SIGTRAP. From now
	 * on the kernel signals each call that it refuses, to the process and to its
	 * children. The sandbox must switch this on, because procctl(2) is refused in
	 * capability mode; a process without a handler would be killed.
	 */
	SHAI_REQUEST_TRAPS = 19,
	/*
	 * shai_request_register -> any number of SHAI_PLACE, then SHAI_ANSWER: the process
	 * registers again. The monitor stops it and examines what it has open. Status 0:
	 * SHAI_REGISTERED comes on SHAI_FD_MONITOR.
	 */
	SHAI_REQUEST_REGISTER = 20,
	/*
	 * Header only -> SHAI_ANSWER: a worker was forked, and its stub has made nothing yet.
	 * The sandbox examines the process. Status 0: it shares nothing with others that the
	 * sandbox has not made, and may ask for sessions.
	 */
	SHAI_REQUEST_WORKER = 21
};

enum shai_stub_type {
	/* Header only -> SHAI_PLACED, without the monitor's socket; then SHAI_CONNECTED. */
	SHAI_STUB_ACCEPT = 24,
	SHAI_STUB_DIRECTORY = 25, /* shai_stub_directory -> SHAI_ANSWER, with a directory */
	SHAI_STUB_TRANSFER =
	    26,              /* header only -> SHAI_ANSWER, value: bytes of transfer that follow */
	SHAI_STUB_WRITE = 27 /* shai_stub_write -> SHAI_ANSWER, value: bytes written */
};

enum shai_answer_type {
	SHAI_PLACED = 80, /* shai_placed */
	SHAI_ANSWER = 81, /* shai_answer */
	SHAI_PLACE = 82   /* shai_place -> SHAI_ANSWER, from the task: it is done */
};

/*
 * An open that the kernel refused. A second descriptor, if there is one, is the
 * directory that path is relative to. Otherwise a relative path is relative to the
 * task's working directory. flags are those of open(2); O_PATH asks for a descriptor
 * for metadata only.
 */
struct shai_request_path {
	struct shai_header header;
	int32_t flags;
	uint32_t mode; /* permissions of a file that is created */
	char path[SHAI_REQUEST_PATH_MAX];
};

struct shai_request_send {
	struct shai_header header;
	int32_t number; /* the reserved number to write to */
	uint32_t reserved;
};

struct shai_request_register {
	struct shai_header header;
	struct shai_register record;
};

#define SHAI_PLACED_MAX 10

/* The descriptors that a session begins with, and the number of each: reserved, or 1 or 2. */
struct shai_placed {
	struct shai_header header;
	int32_t status;     /* 0 or a positive errno; on error the other fields are ignored */
	int32_t connection; /* the number of the user's connection */
	uint32_t count;
	uint32_t reserved;
	int32_t number[SHAI_PLACED_MAX]; /* unused entries are 0 */
};

#define SHAI_PLACE_MAX 900

/*
 * Numbers at which the process has to put copies of the descriptor that comes with the
 * record. The sandbox then verifies that it has, and has changed nothing else.
 */
struct shai_place {
	struct shai_header header;
	uint32_t count; /* 1..SHAI_PLACE_MAX */
	uint32_t reserved;
	int32_t number[SHAI_PLACE_MAX]; /* unused entries are 0 */
};

struct shai_stub_directory {
	struct shai_header header;
	uint32_t class;
	uint32_t reserved;
};

/* The bytes to write follow. */
struct shai_stub_write {
	struct shai_header header;
	int32_t number;
	uint32_t size; /* 1..SHAI_STUB_WRITE_MAX */
};

struct shai_answer {
	struct shai_header header;
	int32_t status; /* 0 or a positive errno */
	int32_t value;
};

/*
 * The decisions of a capability set, in shared memory that the monitor has written
 * and that nobody writes any more. It comes with SHAI_BOUND_DECISIONS. The stub answers
 * from it without asking the monitor.
 */
struct shai_decisions {
	uint32_t count;
	uint32_t reserved;
	uint32_t class[SHAI_CLASSES_MAX]; /* readable; count entries, strictly ascending */
};

#endif

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the tests' clients and the stand-in for a task say to each other. A worker carries
 * out what its client's frames say, and passes what the supervisor sends on to the client.
 */
#ifndef SUPERVISOR_TESTS_STAND_IN_H
#define SUPERVISOR_TESTS_STAND_IN_H

#include <stdint.h>

/* The plan: one byte. */
enum scenario {
	SERVES = 's',         /* forks workers, which obey their clients */
	HOLDS_A_FILE = 'h',   /* the same, with one descriptor more than the reserved ones */
	FORKS_CHILDREN = 'c', /* the same, without CLONE_PARENT */
	WORKERS_EXIT = 'w',   /* workers exit at once */
	SEALS = 'r',          /* workers ask to be sealed, and return if they are */
	READS = 'g',          /* the same, and read their channel themselves, by the gate */
	EXITS = 'e'           /* exits with status 3 */
};

enum order {
	SEND = 1,     /* the payload to descriptor 3 */
	SEND_FILE,    /* the same, with a descriptor */
	READ,         /* a file: the payload is its place beneath descriptor argument */
	WRITE,        /* the payload to descriptor argument */
	COLD_CALL,    /* a system call that the monitor answers */
	ACCEPT_AGAIN, /* a second accept4 */
	FORK,         /* a fork of its own */
	EXIT,         /* with status argument */
	RECEIVE,      /* calls the gate: the payload is the query; reports what it lets through */
	RETURN,       /* the session is over; argument 1: the client sees its end */
	CRASH
};

struct frame {
	uint32_t order;
	uint32_t size; /* of the payload, which follows */
	int32_t argument;
};

#define FRAME_MAX 65536

/* The other direction: a record from descriptor 3, or the result of an order. */
struct report {
	uint32_t size;        /* of what follows */
	uint32_t descriptors; /* that came with the record; RESULT: an order's result */
	int32_t value;        /* of RESULT; else the number of the first descriptor */
	int32_t error;        /* of RESULT */
};

#define RESULT 0xffffffffu

#endif

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A monitor for tests, in the same process: its answers are queued on the other
 * end of descriptor 3 before the library asks, and its questions read afterwards.
 * It places real descriptors at the reserved numbers; what the kernel would
 * enforce is not there unless a test says so.
 */
#ifndef SHAI_TESTS_FAKE_MONITOR_H
#define SHAI_TESTS_FAKE_MONITOR_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shai.h"

/* Conduits 1..FAKE_CONDUITS exist; conduit i contains "document i\n". */
#define FAKE_CONDUITS 1100
#define FAKE_CLASSES 5
#define FAKE_CLASS(conduit) ((conduit) % FAKE_CLASSES + 1)

struct fake_monitor {
	int socket;         /* the monitor's end of descriptor 3 */
	int channel;        /* the sending end of channel 0, which workers read in mode baseline */
	int listener_port;  /* TCP, loopback */
	char directory[32]; /* temporary; holds view/ and classes */
	uint64_t sequence;  /* of the next request the library will make */
};

/* Sends a record with descriptors, as they are: nothing is checked or completed. */
void fake_send(struct fake_monitor *fake, const void *record, size_t length, const int *descriptors,
    size_t count);

/* Receives the library's next record; returns its length, 0 when the library hung up. */
size_t fake_receive(struct fake_monitor *fake, void *record, size_t size);

/* Valid records to send or to spoil. */
struct shai_connected fake_connected(enum shai_mode mode);
struct fake_bound {
	struct shai_bound head;
	uint32_t classes[FAKE_CLASSES];
};
struct fake_bound fake_bound(struct fake_monitor *fake, uint32_t flags, uint32_t class_count);

/* Makes a bound session that holds classes 1..class_count and their directories. */
void fake_bind(const struct fake_monitor *fake, struct shai_session *session, enum shai_mode mode,
    uint32_t class_count);

/* Answers the next SHAI_OPEN, with a descriptor for each status 0. */
void fake_queue_opened(struct fake_monitor *fake, uint32_t count, const int32_t *status);

/* Ends the process unless this is the conduit's document. */
void fake_expect_document(const struct shai_document *document, uint32_t conduit);

/* Connects a client to the listener; returns its socket. */
int fake_connect(const struct fake_monitor *fake);

/* Passes a transfer on, as the supervisor of the session's task does. */
void fake_transfer(
    struct fake_monitor *fake, uint32_t query, const uint32_t *conduits, size_t count);

/* Passes the bytes of a channel's record on, as they are. */
void fake_pass_on(struct fake_monitor *fake, const void *bytes, size_t length);

/* A descriptor of the directory of a class, as sessions get them. */
int fake_class_directory(const struct fake_monitor *fake, uint32_t class);

/* A descriptor of nothing in particular. */
int fake_descriptor(void);

/* How many descriptors this process has open. */
size_t fake_descriptor_count(void);

/* Ends the process when a condition does not hold; scenarios run in their own process. */
#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(stderr, "%s:%d: not so: %s (errno %m; %s)\n", __FILE__,      \
			    __LINE__, #condition, shai_reason());                                  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

/*
 * Runs a scenario in a forked process with a fresh fake monitor, for the library
 * keeps state per process. Descriptors 3 to 6, 16 and 96 are there; the fake's own are
 * far above the reserved ones. Returns the process's exit status: 0 if it came to its
 * end; 128 and the signal if it was killed.
 */
typedef void fake_scenario(struct fake_monitor *fake, size_t variant);
int fake_run(fake_scenario *scenario, size_t variant);

/* Defines a test of cmocka that runs the variants of a scenario. */
#define RUN(scenario, variants)                                                                    \
	static void test_##scenario(void **state)                                                  \
	{                                                                                          \
		(void)state;                                                                       \
		for (size_t variant = 0; variant < (variants); variant++)                          \
			assert_int_equal(fake_run(scenario, variant), 0);                          \
	}

#endif

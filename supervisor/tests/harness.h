/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Starts the real supervisor with the stand-in for a task. The test is its monitor, and
 * the clients.
 */
#ifndef SUPERVISOR_TESTS_HARNESS_H
#define SUPERVISOR_TESTS_HARNESS_H

#include "packets.h"
#include "shai_supervision.h"
#include "stand_in.h"
#include "testing.h"

/* Ends the test when a condition does not hold. */
#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail_msg("%s:%d: not so: %s (errno %m)", __FILE__, __LINE__, #condition);  \
	} while (0)

/* After so long without anything a process is taken to hang, on a busy machine, too. */
#define PATIENCE_MILLISECONDS 180000

/* Documents 1..9 exist; 7 has class 2, the others class 1; 9 only its owner may read. */
#define DOCUMENT_OF_BOB 7
#define DOCUMENT_PRIVATE 9
#define CLASS_TABLE 10

struct harness {
	pid_t supervisor;
	int control;
	int status; /* what the supervisor says when it cannot start */
	int output; /* what the task's processes print */
	int port;
	int channel; /* the writing end of slot 0's channel */
	int pipe;    /* the reading end of slot 0's pipe */
	pid_t zygote;
	int listener; /* the monitor's duplicate, -1 before it came */
	char directory[32];
	struct shai_control_event event[1024]; /* those that came, in order */
	size_t events;
	size_t read;                              /* of them, by harness_event */
	struct shai_control_notification call[8]; /* that came, and were not waited for yet */
	size_t calls;
	uint64_t fence;
};

/* The settings that tests start from: mode shai, 2 slots, 1 idle worker, no limits. */
struct shai_control_settings harness_settings(void);

/*
 * Starts a supervisor and sends settings (NULL: harness_settings), slots, keys of alice and bob,
 * sets, credits, BEGIN.
 */
void harness_start(
    struct harness *h, enum scenario scenario, const struct shai_control_settings *settings);

/* The same, without credits: no session can be bound. */
void harness_start_without_credits(
    struct harness *h, enum scenario scenario, const struct shai_control_settings *settings);

/* The same, without BEGIN: no session begins. */
void harness_prepare(
    struct harness *h, enum scenario scenario, const struct shai_control_settings *settings);

/* Only starts it: no record is sent. */
void harness_launch(struct harness *h, enum scenario scenario);

/* Between the two, the supervisor does nothing; then it finds everything at once. */
void harness_stand_still(const struct harness *h);
void harness_go_on(const struct harness *h);

/* Waits for the supervisor's end. Returns its wait status. */
int harness_wait(struct harness *h);

/* Ends everything that is left. */
void harness_stop(struct harness *h);

/* A test that ends with it. */
int harness_teardown(void **state);
#define HARNESS_TEST(test, h)                                                                      \
	cmocka_unit_test_prestate_setup_teardown(test, NULL, harness_teardown, h)

void harness_send(
    struct harness *h, const void *record, size_t size, const struct descriptors *with);

/* A header, and a record that has nothing else. */
struct shai_control_header control_header(enum shai_control_type type, size_t size);
void harness_order(struct harness *h, enum shai_control_type type);

/* A set of a principal, of class 1 or of both. */
void harness_set(struct harness *h, const char *principal, uint32_t class_count, uint32_t flags);

/* Waits until a record of this type comes; events and calls are kept. Returns its size. */
size_t harness_receive(struct harness *h, enum shai_control_type type, void *record, size_t size);

/* Waits until the supervisor tells of counts that have changed. */
struct shai_control_counts harness_counts(struct harness *h);

/* Waits for the next event of a kind; skips ACCEPTED for all others. */
const struct shai_control_event *harness_event(struct harness *h, enum shai_event_kind kind);

/* Waits until everything that was sent is in force. */
void harness_fence(struct harness *h);

/* Waits for the next call that the monitor answers. */
struct shai_control_notification harness_next_call(struct harness *h);

/* Answers one with a value, or the error -value. */
void harness_answer_call(
    const struct harness *h, const struct shai_control_notification *call, int value);

/* Does both. */
struct shai_control_notification harness_call(struct harness *h, int value);

/* Waits until the monitor is asked about a login; answers with a status. */
struct shai_control_ask_bind harness_login(struct harness *h);
void harness_decide(
    struct harness *h, const struct shai_control_ask_bind *question, int32_t status);

/* Waits until a worker asks to be sealed, and seals it. */
void harness_seal(struct harness *h);

/* Waits until a worker is to be compared; answers. */
struct shai_control_compare harness_comparison(struct harness *h);
void harness_answer_comparison(
    struct harness *h, const struct shai_control_compare *question, bool equal);

/* Does both. Returns the worker's pid. */
pid_t harness_compare(struct harness *h, bool equal);

struct client {
	int socket;
	struct shai_connected connected;
};

/* The key pair of a principal. */
void client_key(const char *principal, uint8_t key[SHAI_KEY_SIZE], uint8_t secret[64]);

/*
 * Connects, from the address 127.0.0.HOST or from 127.0.0.1; begun when the worker has its
 * session.
 */
int client_connect_from(const struct harness *h, uint8_t host);
int client_connect(const struct harness *h);
struct client client_begin_from(const struct harness *h, uint8_t host);
struct client client_begin(const struct harness *h);
void client_order(
    const struct client *client, enum order order, int argument, const void *payload, size_t size);

/* Waits until the worker has carried out all orders before. */
void client_finish_orders(const struct client *client);

/* Waits until everything that was sent to its worker before has come to the client. */
void client_settle(struct harness *h, const struct client *client);

/* Waits for the next report, with at most size bytes in out. */
struct report client_report(const struct client *client, void *out, size_t size);

/* Whether a report is there now. */
bool client_has_report(const struct client *client);

/* Whether the connection ends next. */
bool client_closed(const struct client *client);

/* Sends a login as alice or bob, whose signature is right unless spoiled. */
void client_login(const struct client *client, const char *principal, bool spoiled);

/* The answer to it. */
struct shai_bound client_bound(const struct client *client, struct report *report);

/* Logs in; the test fails if that is refused. */
struct report client_bind(const struct client *client, const char *principal);

/* Asks for one document. Returns the status; *file is its number in the worker. */
void client_open(const struct client *client, uint32_t id);
int client_opened(const struct client *client, int *file);

void client_reset(const struct client *client, uint64_t fast_opens);

/* The session is over as libshai ends it: reset, and the worker returns. Closes the socket. */
void client_leave(const struct client *client);

#endif

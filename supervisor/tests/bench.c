/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Prints the supervisor's processor time of a bare session (accepted connection, login, set
 * without documents, reset) and of a transfer. The worker is the stand-in. Figures are of
 * the machine they are measured on; nothing is compared with them.
 */
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "reused.h"

#define SESSIONS 2000
#define TRANSFERS 20000

static struct harness h;

/* User and system time of the supervisor so far, in microseconds. */
static double
processor_time(void)
{
	unsigned long long nanoseconds = 0;
	char path[64];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/schedstat", h.supervisor);
	file = fopen(path, "re");
	EXPECT(file != NULL && fscanf(file, "%llu", &nanoseconds) == 1 && fclose(file) == 0);
	return (double)nanoseconds / 1000;
}

static void
session(void)
{
	struct client client = client_begin(&h);

	(void)client_bind(&client, "alice");
	client_reset(&client, 0);
	EXPECT(client_closed(&client));
	EXPECT(close(client.socket) == 0);
	(void)harness_event(&h, SHAI_EVENT_ENDED);
	if (h.read > COUNT(h.event) / 2)
		h.read = h.events = 0;
}

/* The stand-in only returns: what the roll-back itself takes is not in it. */
static void
sealed_sessions(void)
{
	double before;

	reused_start(&h, SESSIONS + 2);
	harness_set(&h, "alice", 0, SHAI_SET_LEAVES);
	(void)reused_first(&h, "alice");
	before = processor_time();
	for (int i = 2; i <= SESSIONS + 1; i++) {
		struct client client = client_begin(&h);

		(void)client_bind(&client, "alice");
		client_leave(&client);
		if (i % 512 == 0)
			(void)harness_compare(&h, true);
		if (i % 16 == 0)
			harness_fence(&h); /* reads the events */
		h.read = h.events = 0;
	}
	(void)printf(
	    "session of a sealed worker: %.1f us\n", (processor_time() - before) / SESSIONS);
}

static void
transfers(void)
{
	struct client client = client_begin(&h);
	const struct shai_transfer transfer = {
	    .query = shai_first_query(client.connected.nonce), .conduit = {1}};
	char message[64];
	double before;

	(void)client_bind(&client, "alice");
	before = processor_time();
	for (int i = 0; i < TRANSFERS; i++) {
		EXPECT(send(h.channel, &transfer, 12, 0) == 12);
		(void)client_report(&client, message, sizeof(message));
	}
	(void)printf("transfer: %.2f us\n", (processor_time() - before) / TRANSFERS);
	EXPECT(close(client.socket) == 0);
}

int
main(void)
{
	double before;

	harness_start(&h, SERVES, NULL);
	harness_set(&h, "alice", 0, SHAI_SET_LEAVES);
	session();
	before = processor_time();
	for (int i = 0; i < SESSIONS; i++)
		session();
	(void)printf("bare session: %.1f us\n", (processor_time() - before) / SESSIONS);
	harness_stop(&h);
	sealed_sessions();
	harness_stop(&h);
	/* The first session has the slot whose channel is written. */
	harness_start(&h, SERVES, NULL);
	transfers();
	harness_stop(&h);
	return 0;
}

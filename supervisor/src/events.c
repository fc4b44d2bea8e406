/* SPDX-License-Identifier: BSD-2-Clause */
#include "events.h"

#include <string.h>
#include <time.h>

#include "loop.h"
#include "packets.h"

#define RING 1024
/*
 * What is kept free for the sessions that live: each can cause logins, a message and a
 * record of a channel that break the protocol, and its end.
 */
#define KEPT (8 * SHAI_SLOTS_MAX)
#define SOON 32                     /* so many events are sent at once */
#define PATIENCE (20 * MILLISECOND) /* fewer after this time */

static struct shai_control_event ring[RING];
static size_t first, count;
static int64_t oldest; /* when the first of them was added */

struct shai_control_event *
events_add(enum shai_event_kind kind)
{
	struct shai_control_event *event;
	struct timespec now;

	if (count == 0)
		oldest = loop_now();
	if (count == RING) /* only what is not a session's can fill it: keep the older ones */
		event = &ring[(first + RING - 1) % RING];
	else
		event = &ring[(first + count++) % RING];
	memset(event, 0, sizeof(*event));
	(void)clock_gettime(CLOCK_REALTIME, &now);
	event->kind = kind;
	event->when = now.tv_sec * SECOND + now.tv_nsec;
	return event;
}

bool
events_room(void)
{
	return count + KEPT < RING;
}

int
events_flush(int control)
{
	static struct {
		struct shai_control_events head;
		struct shai_control_event event[SHAI_EVENTS_MAX];
	} record;

	while (count > 0) {
		size_t batch = count < SHAI_EVENTS_MAX ? count : SHAI_EVENTS_MAX;

		for (size_t i = 0; i < batch; i++)
			record.event[i] = ring[(first + i) % RING];
		record.head.count = (uint32_t)batch;
		record.head.header =
		    (struct shai_control_header){SHAI_CONTROL_EVENTS, SHAI_CONTROL_VERSION,
			(uint32_t)(sizeof(record.head) + batch * sizeof(ring[0]))};
		if (packet_send(control, &record, record.head.header.size, NULL) != 0) {
			oldest = loop_now(); /* the next attempt */
			return -1;
		}
		first = (first + batch) % RING;
		count -= batch;
	}
	return 0;
}

int64_t
events_deadline(void)
{
	if (count == 0)
		return INT64_MAX;
	return count >= SOON ? oldest : oldest + PATIENCE;
}

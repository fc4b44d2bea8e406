/* SPDX-License-Identifier: BSD-2-Clause */
#include "events.h"

#include <string.h>
#include <time.h>

#include "loop.h"
#include "packets.h"

#define SPARE 768
/*
 * What is kept free for each session: it can cause logins, a message and a record of a
 * channel that break the protocol, and its end.
 */
#define KEPT_EACH 8
#define SOON 32                     /* so many events are sent at once */
#define PATIENCE (20 * MILLISECOND) /* fewer after this time */

static struct shai_control_event ring[SPARE + KEPT_EACH * SHAI_SLOTS_MAX];
static size_t kept, first, count;
static int64_t oldest; /* when the first of them was added */

void
events_begin(uint32_t sessions)
{
	kept = (size_t)KEPT_EACH * sessions;
}

static size_t
place(size_t number)
{
	return (first + number) % (SPARE + kept);
}

struct shai_control_event *
events_add(enum shai_event_kind kind)
{
	struct shai_control_event *event;
	struct timespec now;

	if (count == 0)
		oldest = loop_now();
	if (count < SPARE + kept)
		count++; /* else only what is not a session's has filled it: keep the older ones */
	event = &ring[place(count - 1)];
	memset(event, 0, sizeof(*event));
	(void)clock_gettime(CLOCK_REALTIME, &now);
	event->kind = kind;
	event->when = now.tv_sec * SECOND + now.tv_nsec;
	return event;
}

bool
events_room(void)
{
	return count < SPARE;
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
			record.event[i] = ring[place(i)];
		record.head.count = (uint32_t)batch;
		record.head.header =
		    (struct shai_control_header){SHAI_CONTROL_EVENTS, SHAI_CONTROL_VERSION,
			(uint32_t)(sizeof(record.head) + batch * sizeof(ring[0]))};
		if (packet_send(control, &record, record.head.header.size, NULL) != 0) {
			oldest = loop_now(); /* the next attempt */
			return -1;
		}
		count -= batch;
		first = count == 0 ? 0 : place(batch); /* uses no more memory than it needs */
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

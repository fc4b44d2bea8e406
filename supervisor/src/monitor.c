/* SPDX-License-Identifier: BSD-2-Clause */
#include "monitor.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "events.h"
#include "text.h"
#include "workers.h"

/* How often the monitor is told of counts. */
#define COUNTS_INTERVAL (100 * MILLISECOND)

struct shai_control_header
monitor_header(enum shai_control_type type, size_t size)
{
	return (struct shai_control_header){
	    .type = (uint16_t)type, .version = SHAI_CONTROL_VERSION, .size = (uint32_t)size};
}

/* A full socket is watched until the monitor has read. Other errors come with its end. */
static int
sent(struct supervisor *s, int result)
{
	if (result != 0 && errno == EAGAIN && !s->full) {
		s->full = true;
		loop_change(&s->control, EPOLLIN | EPOLLOUT);
	}
	return result;
}

int
monitor_send(struct supervisor *s, const void *record, size_t size, int descriptor)
{
	struct descriptors with = {.number = {descriptor}, .count = descriptor >= 0};

	if (sent(s, events_flush(SHAI_CONTROL_FD)) != 0)
		return -1;
	return sent(s, packet_send(SHAI_CONTROL_FD, record, size, &with));
}

static int
tell_fenced(struct supervisor *s)
{
	struct shai_control_fence record = {
	    .header = monitor_header(SHAI_CONTROL_FENCED, sizeof(record)), .number = s->fenced};

	if (!s->fencing || s->awaited > 0)
		return 0;
	if (monitor_send(s, &record, sizeof(record), -1) != 0)
		return -1;
	s->fencing = false;
	return 0;
}

static struct shai_control_counts
count(const struct supervisor *s)
{
	struct shai_control_counts counts = {
	    .header = monitor_header(SHAI_CONTROL_COUNTS, sizeof(counts)),
	    .idle = s->workers[WORKER_IDLE],
	    .rolled_back = s->sealed,
	    .opens = s->opens};
	uint32_t living = 0;

	for (size_t i = WORKER_NONE + 1; i < WORKER_STATES; i++)
		living += s->workers[i];
	counts.forked = living - s->sealed;
	return counts;
}

/* Whether the counts differ from those that were told, which are 0 at first. */
static bool
have_changed(const struct supervisor *s, const struct shai_control_counts *counts)
{
	struct shai_control_counts told = s->told;

	told.header = counts->header;
	return memcmp(counts, &told, sizeof(told)) != 0;
}

int
monitor_tell_counts(struct supervisor *s)
{
	struct shai_control_counts counts = count(s);

	if (!have_changed(s, &counts))
		return 0;
	if (monitor_send(s, &counts, sizeof(counts), -1) != 0)
		return -1;
	s->told = counts;
	return 0;
}

/* Tells the counts when they have changed. Returns when to ask again. */
static int64_t
tell_counts(struct supervisor *s, int64_t now)
{
	struct shai_control_counts counts = count(s);

	if (!have_changed(s, &counts))
		return INT64_MAX;
	if (now < s->tell_after)
		return s->tell_after;
	if (monitor_tell_counts(s) == 0)
		s->tell_after = now + COUNTS_INTERVAL;
	return INT64_MAX;
}

int64_t
monitor_report(struct supervisor *s)
{
	int64_t now = loop_now(), counts, events;

	if (s->full || s->lost)
		return INT64_MAX;
	if (events_deadline() <= now && sent(s, events_flush(SHAI_CONTROL_FD)) != 0)
		return INT64_MAX;
	if (s->fencing)
		s->tell_after = now; /* what is told before the fence is how things are */
	counts = tell_counts(s, now);
	if (tell_fenced(s) != 0)
		return INT64_MAX;
	events = s->full ? INT64_MAX : events_deadline();
	return counts < events ? counts : events;
}

struct shai_control_event *
monitor_event(enum shai_event_kind kind, const struct session *session)
{
	struct shai_control_event *event = events_add(kind);

	event->session = session->id;
	event->slot = session->slot;
	event->mode = session->mode;
	event->worker = session->worker != NULL ? session->worker->pid : 0;
	memcpy(event->peer, session->peer, sizeof(event->peer));
	memcpy(event->principal, session->principal, sizeof(event->principal));
	memcpy(event->instance, session->instance, sizeof(event->instance));
	return event;
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The test as the monitor: what it tells the supervisor, and hears from it.
 */
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "harness.h"
#include "text.h"

struct shai_control_header
control_header(enum shai_control_type type, size_t size)
{
	return (struct shai_control_header){
	    .type = (uint16_t)type, .version = SHAI_CONTROL_VERSION, .size = (uint32_t)size};
}

void
harness_send(struct harness *h, const void *record, size_t size, const struct descriptors *with)
{
	struct pollfd writable = {.fd = h->control, .events = POLLOUT};

	EXPECT(poll(&writable, 1, PATIENCE_MILLISECONDS) == 1);
	EXPECT(packet_send(h->control, record, size, with) == 0);
}

void
harness_order(struct harness *h, enum shai_control_type type)
{
	struct shai_control_header record = control_header(type, sizeof(record));

	harness_send(h, &record, sizeof(record), NULL);
}

static void
keep_events(struct harness *h, const void *record)
{
	const struct shai_control_events *head = record;
	const struct shai_control_event *event = (const void *)(head + 1);

	for (uint32_t i = 0; i < head->count && h->events < COUNT(h->event); i++) {
		EXPECT(text_valid(event[i].reason, sizeof(event[i].reason)));
		h->event[h->events++] = event[i];
	}
}

static void
keep_call(struct harness *h, const void *record)
{
	EXPECT(h->calls < COUNT(h->call));
	memcpy(&h->call[h->calls++], record, sizeof(h->call[0]));
}

/* Receives one record of any type. Returns its size, 0 when the supervisor has gone. */
static size_t
receive_any(struct harness *h, void *record)
{
	struct pollfd ready = {.fd = h->control, .events = POLLIN};
	const struct shai_control_header *header = record;
	struct descriptors received;
	ssize_t size;

	EXPECT(poll(&ready, 1, PATIENCE_MILLISECONDS) == 1);
	size = packet_receive(h->control, record, SHAI_CONTROL_MAX, &received);
	EXPECT(size >= 0);
	if (size > 0 && header->type == SHAI_CONTROL_LISTENER)
		h->listener = descriptors_take(&received, 0);
	descriptors_close(&received);
	if (size > 0 && header->type == SHAI_CONTROL_EVENTS)
		keep_events(h, record);
	if (size > 0 && header->type == SHAI_CONTROL_NOTIFICATION)
		keep_call(h, record);
	return (size_t)size;
}

size_t
harness_receive(struct harness *h, enum shai_control_type type, void *out, size_t size)
{
	static _Alignas(8) uint8_t record[SHAI_CONTROL_MAX];

	for (;;) {
		size_t got = receive_any(h, record);
		const struct shai_control_header *header = (const void *)record;

		EXPECT(got >= sizeof(*header) && header->size == got);
		if (header->type == type) {
			memcpy(out, record, got < size ? got : size);
			return got;
		}
	}
}

struct shai_control_counts
harness_counts(struct harness *h)
{
	struct shai_control_counts counts;

	(void)harness_receive(h, SHAI_CONTROL_COUNTS, &counts, sizeof(counts));
	return counts;
}

const struct shai_control_event *
harness_event(struct harness *h, enum shai_event_kind kind)
{
	static _Alignas(8) uint8_t record[SHAI_CONTROL_MAX];

	for (;;) {
		while (h->read < h->events) {
			const struct shai_control_event *event = &h->event[h->read++];

			if (event->kind == kind)
				return event;
		}
		EXPECT(receive_any(h, record) > 0);
	}
}

struct shai_control_notification
harness_next_call(struct harness *h)
{
	static _Alignas(8) uint8_t record[SHAI_CONTROL_MAX];
	struct shai_control_notification next;

	while (h->calls == 0)
		EXPECT(receive_any(h, record) > 0);
	next = h->call[0];
	h->calls--;
	memmove(h->call, h->call + 1, h->calls * sizeof(next));
	return next;
}

void
harness_fence(struct harness *h)
{
	struct shai_control_fence fence = {
	    .header = control_header(SHAI_CONTROL_FENCE, sizeof(fence)), .number = ++h->fence};
	struct shai_control_fence fenced;

	harness_send(h, &fence, sizeof(fence), NULL);
	(void)harness_receive(h, SHAI_CONTROL_FENCED, &fenced, sizeof(fenced));
	EXPECT(fenced.number == h->fence);
}

void
harness_answer_call(
    const struct harness *h, const struct shai_control_notification *call, int value)
{
	struct seccomp_notif_resp answer = {.id = call->notification.id,
	    .val = value < 0 ? 0 : value,
	    .error = value < 0 ? value : 0};

	EXPECT(ioctl(h->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0);
}

struct shai_control_notification
harness_call(struct harness *h, int value)
{
	struct shai_control_notification call = harness_next_call(h);

	harness_answer_call(h, &call, value);
	return call;
}

struct shai_control_ask_bind
harness_login(struct harness *h)
{
	struct shai_control_ask_bind question;

	(void)harness_receive(h, SHAI_CONTROL_ASK_BIND, &question, sizeof(question));
	return question;
}

void
harness_decide(struct harness *h, const struct shai_control_ask_bind *question, int32_t status)
{
	const struct shai_control_bind answer = {
	    .header = control_header(SHAI_CONTROL_BIND, sizeof(answer)),
	    .session = question->session,
	    .sequence = question->sequence,
	    .status = status};

	harness_send(h, &answer, sizeof(answer), NULL);
}

void
harness_seal(struct harness *h)
{
	struct shai_control_notification call = harness_next_call(h);
	struct shai_control_sealed record = {
	    .header = control_header(SHAI_CONTROL_SEALED, sizeof(record)),
	    .id = call.notification.id,
	    .pid = (int32_t)call.notification.pid};

	EXPECT(call.notification.data.nr == SYS_seccomp && call.session == 0);
	harness_send(h, &record, sizeof(record), NULL);
}

struct shai_control_compare
harness_comparison(struct harness *h)
{
	struct shai_control_compare question;

	(void)harness_receive(h, SHAI_CONTROL_COMPARE, &question, sizeof(question));
	return question;
}

void
harness_answer_comparison(
    struct harness *h, const struct shai_control_compare *question, bool equal)
{
	const struct shai_control_compared answer = {
	    .header = control_header(SHAI_CONTROL_COMPARED, sizeof(answer)),
	    .id = question->id,
	    .pid = question->pid,
	    .equal = equal};

	harness_send(h, &answer, sizeof(answer), NULL);
}

pid_t
harness_compare(struct harness *h, bool equal)
{
	struct shai_control_compare question = harness_comparison(h);

	harness_answer_comparison(h, &question, equal);
	return question.pid;
}

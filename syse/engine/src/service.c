/* SPDX-License-Identifier: BSD-2-Clause */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "choice.h"
#include "complaints.h"
#include "lines.h"
#include "shai_wire.h"

struct slot {
	const struct service *service;
	unsigned number;
	pthread_t thread;
	struct chance chance;
	struct lines lines;
	struct answers answers;
	long answered;
	bool failed;
};

/* The fault that a channel for descriptors must not let through. */
static int
send_beginning(struct slot *slot, const struct request *request, struct document document)
{
	char text[4 * SHAI_BATCH_MAX];
	int file = documents_open(&slot->service->documents, document);
	ssize_t size = file < 0 ? -1 : read(file, text, sizeof text);

	if (file >= 0)
		(void)close(file);
	if (size < 0)
		return -1;
	return answers_send_text(&slot->answers, request, text, (size_t)size);
}

static int
answer(struct slot *slot, const struct request *request)
{
	const struct service *service = slot->service;
	struct document chosen[SHAI_BATCH_MAX];
	size_t count;

	keep_busy(service->busy_cycles);
	if (service->fault == FAULT_NONE)
		count = choose(&service->documents, request, &slot->chance, chosen);
	else
		count = choose_any(&service->documents, request, &slot->chance, chosen);
	if (service->fault == FAULT_TEXT_INSTEAD_OF_IDS && count > 0)
		return send_beginning(slot, request, chosen[0]);
	return answers_send(&slot->answers, request, chosen, count);
}

/* A query that cannot be read gets an empty answer, so that nobody waits for it. */
static int
answer_line(struct slot *slot, enum lines_result found, const char *line, size_t length)
{
	struct request request = {0};
	const char *problem =
	    found == LINES_TOO_LONG ? "it is too long" : request_read(&request, line, length);
	int result;

	if (problem == NULL) {
		result = answer(slot, &request);
	} else {
		complain("slot %u: a query got an empty answer: %s", slot->number, problem);
		request.checked = false;
		result = answers_send(&slot->answers, &request, NULL, 0);
	}
	request_release(&request);
	return result;
}

static int
serve(struct slot *slot)
{
	char path[PATH_MAX];
	enum lines_result found;
	const char *line;
	size_t length;

	snprintf(path, sizeof path, "%s/%u", slot->service->queries, slot->number);
	slot->lines.pipe = open(path, O_RDONLY | O_CLOEXEC);
	if (slot->lines.pipe < 0 || chance_seed(&slot->chance) != 0 ||
	    answers_open(&slot->answers, &slot->service->documents, &slot->service->channels,
		slot->number) != 0)
		return -1;
	while ((found = lines_next(&slot->lines, &line, &length)) != LINES_END) {
		if (answer_line(slot, found, line, length) != 0)
			return -1;
		slot->answered++;
	}
	return errno == 0 ? 0 : -1;
}

static void *
run_slot(void *argument)
{
	struct slot *slot = argument;

	slot->failed = serve(slot) != 0;
	if (slot->failed)
		complain("slot %u is no longer served: %s", slot->number, strerror(errno));
	return NULL;
}

long
service_run(const struct service *service)
{
	static struct slot slots[SHAI_FD_CHANNEL_COUNT];
	bool failed = false;
	long answered = 0;
	unsigned started = 0;

	for (; started < service->slots; started++) {
		struct slot *slot = &slots[started];
		int error;

		*slot = (struct slot){.service = service, .number = started};
		error = pthread_create(&slot->thread, NULL, run_slot, slot);
		if (error != 0) {
			complain("slot %u has no thread: %s", started, strerror(error));
			failed = true;
			break;
		}
	}
	for (unsigned i = 0; i < started; i++) {
		(void)pthread_join(slots[i].thread, NULL);
		answered += slots[i].answered;
		failed = failed || slots[i].failed;
	}
	return failed ? -1 : answered;
}

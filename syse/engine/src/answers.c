/* SPDX-License-Identifier: BSD-2-Clause */
#include "answers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "passing.h"
#include "shai_wire.h"

static int
open_channel(const char *path, unsigned slot)
{
	char full[PATH_MAX];

	snprintf(full, sizeof full, "%s/%u", path, slot);
	return open(full, O_WRONLY | O_CLOEXEC);
}

int
answers_open(struct answers *answers, const struct documents *documents,
    const struct channel_paths *paths, unsigned slot)
{
	*answers =
	    (struct answers){.documents = documents, .paths = paths, .slot = slot, .checked = -1};
	answers->results = open_channel(paths->results, slot);
	answers->passes = answers->results >= 0 && passing_is(answers->results);
	return answers->results < 0 ? -1 : 0;
}

static int
channel_for(struct answers *answers, const struct request *request)
{
	if (!request->checked)
		return answers->results;
	if (answers->checked < 0)
		answers->checked = strcmp(answers->paths->checked, answers->paths->results) == 0
				       ? answers->results
				       : open_channel(answers->paths->checked, answers->slot);
	return answers->checked;
}

/* Sends a record in one write, as a channel demands. */
static int
send_record(struct answers *answers, const struct request *request,
    const struct shai_transfer *transfer, size_t size)
{
	int channel = channel_for(answers, request);
	ssize_t written;

	if (channel < 0)
		return -1;
	do
		written = write(channel, transfer, size);
	while (written < 0 && errno == EINTR);
	return written < 0 ? -1 : 0;
}

static int
send_numbers(struct answers *answers, const struct request *request, const struct document *chosen,
    size_t count)
{
	struct shai_transfer transfer = {.query = request->query};

	for (size_t i = 0; i < count; i++)
		transfer.conduit[i] = chosen[i].conduit;
	return send_record(answers, request, &transfer,
	    offsetof(struct shai_transfer, conduit) + count * sizeof transfer.conduit[0]);
}

/* Nothing is no answer there: a transfer is descriptors. */
static int
send_descriptors(struct answers *answers, const struct document *chosen, size_t count)
{
	int opened[SHAI_BATCH_MAX];
	size_t open_count = 0;
	int result = 0, error;

	for (size_t i = 0; i < count; i++) {
		opened[open_count] = documents_open(answers->documents, chosen[i]);
		if (opened[open_count] >= 0)
			open_count++;
	}
	if (open_count > 0)
		result = passing_send(answers->results, opened, open_count);
	error = errno;
	while (open_count > 0)
		(void)close(opened[--open_count]);
	errno = error;
	return result;
}

int
answers_send(struct answers *answers, const struct request *request, const struct document *chosen,
    size_t count)
{
	if (answers->passes)
		return send_descriptors(answers, chosen, count);
	return send_numbers(answers, request, chosen, count);
}

int
answers_send_text(
    struct answers *answers, const struct request *request, const char *text, size_t size)
{
	struct shai_transfer transfer = {.query = request->query};

	if (size > sizeof transfer.conduit)
		size = sizeof transfer.conduit;
	memcpy(transfer.conduit, text, size);
	return send_record(
	    answers, request, &transfer, offsetof(struct shai_transfer, conduit) + size);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "probe_worker.h"

void
probe_signature(const char *hex, uint8_t signature[SHAI_SIGNATURE_SIZE])
{
	memset(signature, 0, SHAI_SIGNATURE_SIZE);
	for (size_t i = 0; hex != NULL && i < SHAI_SIGNATURE_SIZE && strlen(hex) >= 2 * i + 2; i++)
		sscanf(hex + 2 * i, "%2hhx", &signature[i]);
}

void
probe_authenticate(char *rest)
{
	const char *name = strtok(rest, " "), *hex = strtok(NULL, " ");
	uint8_t signature[SHAI_SIGNATURE_SIZE];

	probe_signature(hex, signature);
	if (shai_authenticate(&session, name == NULL ? "" : name, signature) == -1)
		answer_error(shai_reason());
	else
		answer("bound %s", session.instance);
}

static void
answer_opened(struct shai_document *documents, ssize_t count)
{
	char line[LINE - 64] = "opened";

	if (count == -1) {
		answer_error(shai_reason());
		return;
	}
	for (ssize_t i = 0; i < count; i++) {
		snprintf(
		    line + strlen(line), sizeof(line) - strlen(line), " %u", documents[i].conduit);
		close(documents[i].descriptor);
	}
	answer("%s, withheld %u", line, session.withheld);
}

static size_t
numbers(char *list, uint32_t *out, size_t max)
{
	size_t count = 0;

	for (char *word = strtok(list, " "); word != NULL && count < max; word = strtok(NULL, " "))
		out[count++] = (uint32_t)strtoul(word, NULL, 10);
	return (count);
}

void
probe_open(char *rest)
{
	struct shai_document documents[SHAI_BATCH_MAX];
	uint32_t ids[SHAI_BATCH_MAX];
	size_t count = numbers(rest, ids, SHAI_BATCH_MAX);

	answer_opened(documents, shai_open(&session, ids, count, documents, SHAI_BATCH_MAX));
}

void
probe_receive(char *rest)
{
	struct shai_document documents[SHAI_BATCH_MAX];
	uint32_t query = session.first_query + (uint32_t)strtoul(rest, NULL, 10);

	answer_opened(documents, shai_channel_receive(&session, query, documents, SHAI_BATCH_MAX));
}

void
probe_read(char *rest)
{
	struct shai_document document;
	uint32_t number = (uint32_t)strtoul(rest, NULL, 10);
	char text[256] = "";

	if (shai_open(&session, &number, 1, &document, 1) != 1) {
		answer("error %s withheld %u", error_name(EACCES), session.withheld);
		return;
	}
	if (read(document.descriptor, text, sizeof(text) - 1) == -1)
		answer_error("read");
	else
		answer("text %.*s", (int)strcspn(text, "\n"), text);
	close(document.descriptor);
}

static void
answer_descriptor(int descriptor)
{
	if (descriptor == -1) {
		answer_error("");
		return;
	}
	close(descriptor);
	answer("descriptor");
}

void
probe_native(char *rest)
{
	answer_descriptor(open(rest, O_RDONLY));
}

/* Opens a file of the view by the directory of its class, or from another one upwards. */
static int
open_beneath(const char *path)
{
	uint32_t class = (uint32_t)strtoul(path, NULL, 10); /* first: it may set errno */
	int descriptor = openat(SHAI_FD_CAPABILITY, path, O_RDONLY);

	for (uint32_t i = 0; descriptor == -1 && class != 0 && i < session.directory_count; i++) {
		char name[LINE];

		if (session.classes[i] == class)
			snprintf(name, sizeof(name), "%s", strchr(path, '/') + 1);
		else
			snprintf(name, sizeof(name), "../%s", path);
		descriptor = openat(session.directories[i], name, O_RDONLY);
	}
	return descriptor;
}

void
probe_beneath(char *rest)
{
	answer_descriptor(open_beneath(rest));
}

void
probe_raw(__attribute__((unused)) char *rest)
{
	char record[sizeof(struct shai_transfer)];

	struct iovec whole = {record, sizeof(record)};

	if (readv(SHAI_FD_CHANNEL, &whole, 1) == -1)
		answer_error("");
	else
		answer("record");
}

void
probe_query(char *rest)
{
	answer(dprintf(session.query_pipe, "%s\n", rest) > 0 ? "written" : "error");
}

/* One command in RESP, and the first line of what comes back. */
static void
key_value(const char *verb, char *arguments)
{
	char request[LINE], reply[LINE] = "";
	char *key = strtok(arguments, " "), *value = strtok(NULL, " ");
	int size;

	if (session.keyvalue == -1 || key == NULL) {
		answer("error ENOTCONN no key-value connection");
		return;
	}
	if (value == NULL)
		size = snprintf(request, sizeof(request), "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
		    strlen(verb), verb, strlen(key), key);
	else
		size = snprintf(request, sizeof(request),
		    "*3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(verb), verb,
		    strlen(key), key, strlen(value), value);
	if (write(session.keyvalue, request, (size_t)size) != size ||
	    read(session.keyvalue, reply, sizeof(reply) - 1) <= 0) {
		answer_error("key-value");
		return;
	}
	answer("reply %.*s", (int)strcspn(reply, "\r\n"), reply);
}

void
probe_get(char *rest)
{
	key_value("GET", rest);
}

void
probe_push(char *rest)
{
	key_value("LPUSH", rest);
}

/* The time that a text stands for, as facts have it: now, or so many seconds later. */
static void
put_time(char *out, size_t size, long later)
{
	time_t when = time(NULL) + later;
	struct tm parts;

	strftime(out, size, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&when, &parts));
}

/* In a text, "\\n" stands for a line break, @NOW and @LATER for times. */
int
probe_write_content(struct shai_session *by, const char *conduit, const char *text, uint32_t flags)
{
	char content[LINE] = "";
	size_t used = 0;

	while (*text != '\0' && used < sizeof(content) - 32) {
		if (strncmp(text, "\\n", 2) == 0) {
			content[used++] = '\n';
			text += 2;
		} else if (strncmp(text, "@NOW", 4) == 0) {
			put_time(content + used, 32, 0);
			used += strlen(content + used);
			text += 4;
		} else if (strncmp(text, "@LATER", 6) == 0) {
			put_time(content + used, 32, 3600);
			used += strlen(content + used);
			text += 6;
		} else {
			content[used++] = *text++;
		}
	}
	return (shai_write(by, conduit, content, used, flags));
}

static void
write_by_session(char *rest, uint32_t flags)
{
	char *content = strchr(rest, ' ');

	if (content != NULL)
		*content++ = '\0';
	if (probe_write_content(&session, rest, content == NULL ? "" : content, flags) == -1)
		answer_error(shai_reason());
	else
		answer("written");
}

void
probe_write(char *rest)
{
	write_by_session(rest, 0);
}

void
probe_replace(char *rest)
{
	write_by_session(rest, SHAI_WRITE_REPLACE);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "registration.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "classes.h"
#include "directories.h"
#include "exchange.h"
#include "failure.h"
#include "shai.h"

static struct shai_table empty_table;
static struct shai_table *_Atomic current_table = &empty_table;
static bool registered;
static enum shai_mode registered_mode;

const struct shai_table *
shai_table_current(void)
{
	return current_table;
}

static bool
environment_says_baseline(void)
{
	const char *mode = getenv(SHAI_ENVIRONMENT_MODE);

	return mode != NULL && strcmp(mode, "baseline") == 0;
}

enum shai_mode
shai_mode(void)
{
	if (registered)
		return registered_mode;
	return environment_says_baseline() ? SHAI_MODE_BASELINE : SHAI_MODE_SHAI;
}

size_t
shai_capability_count(void)
{
	return current_table->count;
}

const struct shai_capability *
shai_capability_at(size_t i)
{
	const struct shai_table *table = current_table;

	return i < table->count ? &table->entry[i] : NULL;
}

int
shai_path_lookup(const char *path, char *rest, size_t rest_size)
{
	char normal[SHAI_PATH_MAX];
	const struct shai_capability *capability = NULL;
	const char *found;
	int number;

	if (shai_path_normalise(path, normal, sizeof(normal)) == 0)
		capability = shai_table_find(current_table, normal, &found);
	if (capability == NULL)
		return shai_fail(ENOENT, "path %.200s: no capability covers it", path);
	if (strlen(found) >= rest_size)
		return shai_fail(ENAMETOOLONG, "path %.200s: too long", path);
	number = shai_directory_of(capability->number, &found);
	memcpy(rest, found, strlen(found) + 1);
	return number;
}

/*
 * Puts a new table in force. The old one is not freed, because another thread may be
 * using it; tables are replaced once or twice in a task's life.
 */
static void
adopt(const struct shai_registered *head, struct shai_table *table)
{
	table->count = head->capability_count;
	current_table = table;
	registered_mode = (enum shai_mode)head->mode;
	registered = true;
}

/*
 * In mode baseline nothing is enforced. Monitor and launcher have to agree on it, so
 * that neither an old variable nor a confused monitor can switch it on alone.
 */
static const char *
check_mode(const struct shai_registered *head)
{
	bool baseline = head->mode == SHAI_MODE_BASELINE;

	if (environment_says_baseline() && !baseline)
		return "a mode other than baseline, which " SHAI_ENVIRONMENT_MODE " says";
	if (baseline && getenv(SHAI_ENVIRONMENT_MODE) != NULL && !environment_says_baseline())
		return "mode baseline, which " SHAI_ENVIRONMENT_MODE " does not say";
	return NULL;
}

/*
 * Receives the answer, with a table that has room for the longest list. Returns 0, or -1
 * after shai_fail.
 */
static int
receive_registered(
    const char *instance, uint64_t sequence, struct shai_registered *head, struct shai_table *table)
{
	struct shai_message message;
	const char *problem;

	if (shai_exchange_receive(&message) != 0)
		return -1;
	problem = shai_decode_registered(message.bytes, sequence, head, table->entry);
	if (problem == NULL && message.descriptor_count != 0)
		problem = "descriptors that belong to no capability";
	if (problem == NULL && head->status == 0)
		problem = check_mode(head);
	if (problem != NULL)
		return shai_exchange_refuse(&message, "SHAI_REGISTERED", problem);
	if (head->status != 0)
		return shai_fail(head->status, "registration as %s: refused by the monitor: %s",
		    instance, head->reason);
	return 0;
}

static int
receive_table(const char *instance, uint64_t sequence)
{
	struct shai_registered head;
	struct shai_table *table, *shrunk;

	table = malloc(sizeof(*table) + SHAI_TABLE_MAX * sizeof(table->entry[0]));
	if (table == NULL)
		return shai_fail(ENOMEM, "capability table: out of memory");
	if (receive_registered(instance, sequence, &head, table) != 0) {
		free(table);
		return -1;
	}
	shrunk = realloc(table, sizeof(*table) + head.capability_count * sizeof(table->entry[0]));
	adopt(&head, shrunk != NULL ? shrunk : table);
	return 0;
}

int
shai_register(const char *instance, uint32_t flags)
{
	struct shai_register request;

	memset(&request, 0, sizeof(request));
	shai_encode_header(
	    &request.header, SHAI_REGISTER, sizeof(request), shai_exchange_sequence());
	if (shai_encode_text(request.instance, sizeof(request.instance), instance) != 0)
		return shai_fail(ENAMETOOLONG,
		    "registration: instance name is longer than %d bytes", SHAI_NAME_MAX - 1);
	request.flags = flags;
	if (shai_backend_register(&request, registered) != 0 ||
	    receive_table(instance, request.header.sequence) != 0)
		return -1;
	shai_classes_map();
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "support.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define ENTRY_MAX (2 * (SUPPORT_NAME_MAX + SHAI_NAME_MAX) + 64)
#define AHEAD_SECONDS 3600

void
support_entry(struct text *entry, const char *principal, const char *name, time_t when)
{
	struct tm parts;
	char moment[32];

	gmtime_r(&when, &parts);
	strftime(moment, sizeof moment, "%Y-%m-%dT%H:%M:%SZ", &parts);
	text_string(entry, "access(");
	text_quoted(entry, principal, strlen(principal));
	text_string(entry, ", ");
	text_quoted(entry, name, strlen(name));
	text_string(entry, ", ");
	text_string(entry, moment);
	text_string(entry, ")\n");
}

static bool
write_entry(struct worker *worker, const struct text *entry, char reason[SUPPORT_REASON_MAX])
{
	/* In mode baseline the monitor keeps no log: the entry goes where programs log otherwise.
	 */
	if (shai_mode() == SHAI_MODE_BASELINE) {
		if (fwrite(entry->data, 1, entry->length, stderr) == entry->length)
			return true;
		snprintf(reason, SUPPORT_REASON_MAX, "log the access: %s", strerror(errno));
		return false;
	}
	if (shai_write(&worker->session, SUPPORT_LOG, entry->data, entry->length, 0) == 0)
		return true;
	snprintf(reason, SUPPORT_REASON_MAX, "%s", shai_reason());
	return false;
}

/* Writes the entry about an access, as far as the fault lets it. */
static bool
log_access(struct worker *worker, const char *name, char reason[SUPPORT_REASON_MAX])
{
	enum fault fault = worker->settings->fault;
	const char *who = fault == FAULT_FORGE_ENTRY ? "colleague" : worker->principal;
	time_t when = time(NULL) + (fault == FAULT_DATE_AHEAD ? AHEAD_SECONDS : 0);
	char storage[ENTRY_MAX];
	struct text entry;

	if (fault == FAULT_SKIP_ENTRY)
		return true;
	text_init(&entry, storage, sizeof storage);
	support_entry(&entry, who, name, when);
	if (entry.overflowed) {
		snprintf(reason, SUPPORT_REASON_MAX, "the document's name is too long");
		return false;
	}
	/* A front end with a fault reads although its entry was refused. */
	return write_entry(worker, &entry, reason) || fault != FAULT_NONE;
}

int
support_read(struct worker *worker, const char *name, uint32_t id, struct document *document,
    char reason[SUPPORT_REASON_MAX])
{
	if (!log_access(worker, name, reason))
		return 403;
	return document_open(&worker->session, id, document, reason, SUPPORT_REASON_MAX);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "documents.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "monitor.h"
#include "sessions.h"
#include "worker_records.h"

#define BUCKET 1024 /* documents in one directory of a class */

int
documents_begin(struct supervisor *s, int view, int classes)
{
	struct stat table;
	void *map;

	s->view = view;
	if (fstat(classes, &table) != 0)
		return -1;
	s->class_count = (size_t)table.st_size / sizeof(s->classes[0]);
	if (s->class_count == 0)
		return 0;
	map = mmap(NULL, (size_t)table.st_size, PROT_READ, MAP_SHARED, classes, 0);
	if (map == MAP_FAILED)
		return -1;
	s->classes = map;
	s->mounts =
	    mounts_new(view, sessions_spare_files(s, s->settings.waiting, s->settings.mounts_max));
	return s->mounts == NULL ? -1 : 0;
}

struct grant
documents_grant(
    struct supervisor *s, const uint32_t *classes, size_t count, struct descriptors *with)
{
	struct grant grant = {.count = count < SHAI_DIRECTORIES_MAX ? count : SHAI_DIRECTORIES_MAX};

	/* Without a directory nothing is lost but speed: the worker asks for the document. */
	if (s->mounts == NULL || !mounts_available(s->mounts) ||
	    mounts_hold(s->mounts, classes, grant.count, grant.held) != 0)
		grant.count = 0;
	for (size_t i = 0; i < grant.count; i++)
		with->number[with->count++] = mount_descriptor(grant.held[i]);
	return grant;
}

void
documents_return(struct supervisor *s, const struct grant *grant)
{
	if (grant->count > 0)
		mounts_release(s->mounts, grant->held, grant->count);
}

/* The class of a document, 0 if there is none. Another process writes the table. */
static uint32_t
class_of(const struct supervisor *s, uint32_t id)
{
	return id < s->class_count ? __atomic_load_n(&s->classes[id], __ATOMIC_RELAXED) : 0;
}

/* The class of a document of the session's set, 0 if it is not one. */
static uint32_t
class_in_set(const struct supervisor *s, const struct session *session, uint32_t id)
{
	uint32_t class = class_of(s, id);

	return class != 0 && set_has_class(session->set, class) ? class : 0;
}

bool
documents_includes(const struct supervisor *s, const struct session *session, uint32_t id)
{
	return class_in_set(s, session, id) != 0;
}

/*
 * Opens one document of the session's set. Returns -1 if the monitor has to look at it:
 * it is not in the set, is not there, or only its owner may read it (this process reads
 * more than the task's user).
 */
static int
open_document(const struct supervisor *s, const struct session *session, uint32_t id)
{
	struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	uint32_t class = class_in_set(s, session, id);
	struct stat status;
	char place[48];
	int file;

	if (class == 0)
		return -1;
	(void)snprintf(place, sizeof(place), "%u/%u/%u", class, id / BUCKET, id);
	file = (int)syscall(SYS_openat2, s->view, place, &how, sizeof(how));
	if (file < 0)
		return -1;
	if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & S_IROTH) != 0)
		return file;
	(void)close(file);
	return -1;
}

/* Opens all documents of a request. Returns false, with none open, if one could not be. */
static bool
open_all(const struct supervisor *s, const struct session *session, const struct shai_open *request,
    struct descriptors *opened)
{
	opened->count = 0;
	while (opened->count < request->count) {
		int file = open_document(s, session, request->conduit[opened->count]);

		if (file < 0) {
			descriptors_close(opened);
			return false;
		}
		opened->number[opened->count++] = file;
	}
	return true;
}

void
documents_ask(struct supervisor *s, struct session *session, const struct shai_header *request)
{
	static struct {
		struct shai_control_relay head;
		uint8_t request[WORKER_MESSAGE_MAX];
	} question;
	size_t size = sizeof(question.head) + request->size;

	question.head = (struct shai_control_relay){
	    .header = monitor_header(SHAI_CONTROL_ASK_RECORD, size), .session = session->id};
	memcpy(question.request, request, request->size);
	session->questioned = true;
	loop_change(&session->socket, 0);
	if (monitor_send(s, &question, size, -1) != 0)
		session_end(s, session, "the monitor did not read what the session asks");
}

/* Tells the worker of its session's set. Returns 0, or -1: the session has ended. */
static int
tell_grown(struct supervisor *s, struct session *session)
{
	static struct {
		struct shai_grown head;
		uint32_t classes[SHAI_CLASSES_MAX];
	} record;
	const struct set *set = session->set;
	size_t size = sizeof(record.head) + set->class_count * sizeof(record.classes[0]);
	struct descriptors with = {.count = 0};
	struct grant grant = documents_grant(s, set->classes, set->class_count, &with);
	int result;

	record.head = (struct shai_grown){.header = session_header(SHAI_GROWN, size, 0),
	    .class_count = (uint32_t)set->class_count,
	    .directory_count = (uint32_t)grant.count};
	memcpy(record.classes, set->classes, set->class_count * sizeof(record.classes[0]));
	result = session_send(s, session, &record, size, &with);
	documents_return(s, &grant);
	session->grown = false;
	return result;
}

void
documents_answer(struct supervisor *s, struct session *session, struct bytes answer,
    const struct descriptors *with)
{
	if (session->grown && tell_grown(s, session) != 0)
		return;
	(void)session_send(s, session, answer.start, answer.length, with);
}

void
documents_open(struct supervisor *s, struct session *session, const struct worker_record *record)
{
	struct shai_opened answer = {
	    .header = session_header(SHAI_OPENED, sizeof(answer), record->sequence),
	    .count = record->open->count};
	struct descriptors opened;

	if (shai_mode_is_dynamic(session->mode) || !open_all(s, session, record->open, &opened)) {
		documents_ask(s, session, &record->open->header);
		return;
	}
	s->opens += opened.count;
	documents_answer(
	    s, session, (struct bytes){.start = &answer, .length = sizeof(answer)}, &opened);
	descriptors_close(&opened);
}

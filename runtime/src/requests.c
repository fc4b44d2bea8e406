/* SPDX-License-Identifier: BSD-2-Clause */
#include "requests.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "view.h"

_Static_assert(sizeof(struct shai_request_path) == 24 + SHAI_REQUEST_PATH_MAX, "no padding");
_Static_assert(sizeof(struct shai_request_send) == 24, "no padding");
_Static_assert(sizeof(struct shai_request_register) == 136, "no padding");
_Static_assert(sizeof(struct shai_place) == 24 + 4 * SHAI_PLACE_MAX, "no padding");
_Static_assert(sizeof(struct shai_placed) == 32 + 4 * SHAI_PLACED_MAX, "no padding");
_Static_assert(sizeof(struct shai_stub_directory) == 24, "no padding");
_Static_assert(sizeof(struct shai_stub_write) == 24, "no padding");
_Static_assert(sizeof(struct shai_answer) == 24, "no padding");
_Static_assert(sizeof(struct shai_decisions) == 8 + 4 * SHAI_CLASSES_MAX, "no padding");

/* A reserved number, standard output or standard error. */
static bool
placeable(int32_t number)
{
	return number >= STDOUT_FILENO && number < SHAI_FD_RESERVED_END;
}

static const char *
check_numbers(const struct shai_placed *placed)
{
	bool found = false;

	for (uint32_t i = 0; i < SHAI_PLACED_MAX; i++) {
		if (i >= placed->count && placed->number[i] != 0)
			return "an unused number that is not 0";
		if (i < placed->count && !placeable(placed->number[i]))
			return "a number at which nothing is placed";
		found = found || (i < placed->count && placed->number[i] == placed->connection);
	}
	if (placed->status == 0 && !found)
		return "no connection";
	return NULL;
}

const char *
shai_decode_placed(struct shai_bytes record, uint64_t sequence, struct shai_placed *out)
{
	const char *problem = shai_decode_reply(record, SHAI_PLACED, sequence, out, sizeof(*out));

	if (problem != NULL)
		return problem;
	if (out->status < 0)
		return "an impossible status";
	if (out->count > SHAI_PLACED_MAX || out->reserved != 0)
		return "an impossible count";
	return check_numbers(out);
}

const char *
shai_decode_place(struct shai_bytes record, uint64_t sequence, struct shai_place *out)
{
	const char *problem = shai_decode_reply(record, SHAI_PLACE, sequence, out, sizeof(*out));

	if (problem != NULL)
		return problem;
	if (out->count == 0 || out->count > SHAI_PLACE_MAX || out->reserved != 0)
		return "an impossible count";
	for (uint32_t i = 0; i < SHAI_PLACE_MAX; i++)
		if (i < out->count ? out->number[i] < 0 : out->number[i] != 0)
			return "a number at which nothing is placed";
	return NULL;
}

const char *
shai_decode_answer(
    struct shai_bytes record, uint64_t sequence, struct shai_answer *out, struct shai_bytes *extra)
{
	const char *problem = shai_decode_head(record, SHAI_ANSWER, out, sizeof(*out));

	if (problem != NULL)
		return problem;
	if (out->header.sequence != sequence)
		return "another request's sequence";
	if (out->status < 0)
		return "an impossible status";
	*extra = (struct shai_bytes){record.start + sizeof(*out), record.length - sizeof(*out)};
	return NULL;
}

const char *
shai_decode_request_path(struct shai_bytes record, struct shai_request_path *out)
{
	const char *problem = shai_decode_head(record, SHAI_REQUEST_PATH, out, sizeof(*out));

	if (problem != NULL)
		return problem;
	if (record.length != sizeof(*out))
		return "longer than its type";
	if (memchr(out->path, '\0', sizeof(out->path)) == NULL)
		return "a path without an end";
	return NULL;
}

const char *
shai_decode_stub_directory(struct shai_bytes record, struct shai_stub_directory *out)
{
	const char *problem = shai_decode_head(record, SHAI_STUB_DIRECTORY, out, sizeof(*out));

	if (problem != NULL)
		return problem;
	if (record.length != sizeof(*out))
		return "longer than its type";
	if (out->reserved != 0)
		return "something in its reserved field";
	return NULL;
}

const char *
shai_decode_stub_write(
    struct shai_bytes record, struct shai_stub_write *out, struct shai_bytes *data)
{
	const char *problem = shai_decode_head(record, SHAI_STUB_WRITE, out, sizeof(*out));

	if (problem != NULL)
		return problem;
	if (out->size == 0 || out->size > SHAI_STUB_WRITE_MAX ||
	    record.length != sizeof(*out) + out->size)
		return "a length that is not its size's";
	*data = (struct shai_bytes){record.start + sizeof(*out), out->size};
	return NULL;
}

bool
shai_decisions_grant(const struct shai_decisions *decisions, uint32_t class)
{
	uint32_t count = decisions == NULL ? 0 : decisions->count;

	/* Read once and limited: the memory was written by another process. */
	if (count > SHAI_CLASSES_MAX)
		return false;
	return shai_class_position(decisions == NULL ? NULL : decisions->class, count, class) <
	       count;
}

bool
shai_decisions_cover(const struct shai_decisions *decisions, const char *path, int flags,
    uint32_t *class, const char **rest)
{
	if ((flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0)
		return false;
	return shai_view_class(path, class, rest) && shai_decisions_grant(decisions, *class);
}

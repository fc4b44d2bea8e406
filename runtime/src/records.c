/* SPDX-License-Identifier: BSD-2-Clause */
#include "records.h"

#include <stdbool.h>
#include <string.h>

#include "paths.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are read in place");
_Static_assert(sizeof(struct shai_header) == 16, "no padding");
_Static_assert(sizeof(struct shai_register) == 120, "no padding");
_Static_assert(sizeof(struct shai_capability) == 264, "no padding");
_Static_assert(sizeof(struct shai_registered) == 288, "no padding");
_Static_assert(sizeof(struct shai_connected) == 440, "no padding");
_Static_assert(sizeof(struct shai_authenticate) == 176, "no padding");
_Static_assert(sizeof(struct shai_bound) == 384, "no padding");
_Static_assert(sizeof(struct shai_reset) == 56, "no padding");
_Static_assert(sizeof(struct shai_open) == 280, "no padding");
_Static_assert(sizeof(struct shai_opened) == 280, "no padding");
_Static_assert(sizeof(struct shai_write) == 280, "no padding");
_Static_assert(sizeof(struct shai_written) == 280, "no padding");
_Static_assert(sizeof(struct shai_choices) == 24, "no padding");
_Static_assert(sizeof(struct shai_offered) == 632, "no padding");
_Static_assert(sizeof(struct shai_choose) == 344, "no padding");
_Static_assert(sizeof(struct shai_chosen) == 280, "no padding");
_Static_assert(sizeof(struct shai_transfer) == 264, "no padding");
_Static_assert(sizeof(struct shai_grown) == 24, "no padding");

const char *
shai_decode_head(struct shai_bytes record, int type, void *head, size_t head_size)
{
	struct shai_header header;

	if (record.length < sizeof(header))
		return "shorter than a header";
	memcpy(&header, record.start, sizeof(header));
	if (header.version != SHAI_WIRE_VERSION)
		return "another protocol version";
	if (header.type != type)
		return "an unexpected type";
	if (header.size != record.length)
		return "a size that is not its length";
	if (record.length < head_size)
		return "shorter than its type";
	memcpy(head, record.start, head_size);
	return NULL;
}

const char *
shai_decode_reply(struct shai_bytes record, int type, uint64_t sequence, void *out, size_t size)
{
	const char *problem = shai_decode_head(record, type, out, size);
	struct shai_header header;

	if (problem != NULL)
		return problem;
	if (record.length != size)
		return "longer than its type";
	memcpy(&header, record.start, sizeof(header));
	return header.sequence == sequence ? NULL : "another request's sequence";
}

/*
 * The text must end with a NUL and have only NULs after it: otherwise two readers
 * could see two texts.
 */
static bool
padded(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	if (length == size)
		return false;
	while (length < size)
		if (text[length++] != '\0')
			return false;
	return true;
}

static bool
number_fits(const struct shai_capability *capability)
{
	int32_t n = capability->number;

	switch (capability->kind) {
	case SHAI_KIND_DIRECTORY:
		return n >= SHAI_FD_CAPABILITY && n < SHAI_FD_CAPABILITY + SHAI_FD_CAPABILITY_COUNT;
	case SHAI_KIND_PIPE:
		return n >= SHAI_FD_PIPE && n < SHAI_FD_PIPE + SHAI_FD_PIPE_COUNT;
	case SHAI_KIND_CHANNEL:
		return n >= SHAI_FD_CHANNEL && n < SHAI_FD_RESERVED_END;
	default:
		return false;
	}
}

static const char *
check_capability(const struct shai_capability *capability)
{
	char normal[SHAI_PREFIX_MAX];

	if (!padded(capability->prefix, sizeof(capability->prefix)))
		return "a prefix that is not padded with NULs";
	if (shai_path_normalise(capability->prefix, normal, sizeof(normal)) != 0 ||
	    strcmp(capability->prefix, normal) != 0 || strcmp(normal, "/") == 0)
		return "a prefix that is not a normal absolute path";
	if (!number_fits(capability))
		return "a descriptor number outside its kind's range";
	if ((capability->rights & (SHAI_RIGHT_READ | SHAI_RIGHT_WRITE)) == 0 ||
	    (capability->rights & ~(SHAI_RIGHT_READ | SHAI_RIGHT_WRITE | SHAI_RIGHT_ASK)) != 0)
		return "unknown rights";
	return NULL;
}

const char *
shai_decode_registered(struct shai_bytes record, uint64_t sequence, struct shai_registered *head,
    struct shai_capability table[SHAI_TABLE_MAX])
{
	const char *problem = shai_decode_head(record, SHAI_REGISTERED, head, sizeof(*head));

	if (problem != NULL)
		return problem;
	if (head->header.sequence != sequence)
		return "another request's sequence";
	if (!padded(head->reason, sizeof(head->reason)))
		return "a reason that is not padded with NULs";
	if (head->status < 0 || (head->status != 0 && head->capability_count != 0))
		return "an impossible status";
	if (head->mode > SHAI_MODE_LAST)
		return "an unknown mode";
	if (head->capability_count > SHAI_TABLE_MAX ||
	    record.length != sizeof(*head) + head->capability_count * sizeof(table[0]))
		return "a length that is not its count's";
	memcpy(table, record.start + sizeof(*head), record.length - sizeof(*head));
	for (uint32_t i = 0; i < head->capability_count && problem == NULL; i++)
		problem = check_capability(&table[i]);
	return problem;
}

const char *
shai_decode_connected(struct shai_bytes record, struct shai_connected *out)
{
	const char *problem = shai_decode_head(record, SHAI_CONNECTED, out, sizeof(*out));

	if (problem != NULL)
		return problem;
	if (record.length != sizeof(*out))
		return "longer than its type";
	if (!padded(out->peer, sizeof(out->peer)) || !padded(out->region, sizeof(out->region)) ||
	    !padded(out->service, sizeof(out->service)) ||
	    !padded(out->pipeline, sizeof(out->pipeline)))
		return "a text that is not padded with NULs";
	if (out->mode > SHAI_MODE_LAST)
		return "an unknown mode";
	if (out->slot >= SHAI_SLOTS_MAX)
		return "a slot out of range";
	return NULL;
}

/* Decodes the classes that follow a head, which says how many have a directory. */
static const char *
decode_classes(struct shai_bytes record, size_t head_size, uint32_t count, uint32_t directories,
    uint32_t classes[SHAI_CLASSES_MAX])
{
	uint32_t previous = 0;

	if (count > SHAI_CLASSES_MAX || record.length != head_size + count * sizeof(classes[0]))
		return "a length that is not its count's";
	if (directories > count || directories > SHAI_DIRECTORIES_MAX)
		return "more directories than classes";
	memcpy(classes, record.start + head_size, record.length - head_size);
	for (uint32_t i = 0; i < count; i++) {
		if (classes[i] <= previous)
			return "classes that are not ascending";
		previous = classes[i];
	}
	return NULL;
}

const char *
shai_decode_bound(struct shai_bytes record, uint64_t sequence, struct shai_bound *head,
    uint32_t classes[SHAI_CLASSES_MAX])
{
	const char *problem = shai_decode_head(record, SHAI_BOUND, head, sizeof(*head));

	if (problem != NULL)
		return problem;
	if (head->header.sequence != sequence)
		return "another request's sequence";
	if (!padded(head->reason, sizeof(head->reason)) ||
	    !padded(head->instance, sizeof(head->instance)))
		return "a text that is not padded with NULs";
	if ((head->flags & ~(SHAI_BOUND_VIEW | SHAI_BOUND_DECISIONS | SHAI_BOUND_KEYVALUE)) != 0)
		return "unknown flags";
	if (head->status < 0 ||
	    (head->status != 0 && ((head->flags & ~SHAI_BOUND_VIEW) | head->class_count) != 0))
		return "an impossible status";
	return decode_classes(
	    record, sizeof(*head), head->class_count, head->directory_count, classes);
}

const char *
shai_decode_grown(
    struct shai_bytes record, struct shai_grown *head, uint32_t classes[SHAI_CLASSES_MAX])
{
	const char *problem = shai_decode_head(record, SHAI_GROWN, head, sizeof(*head));

	if (problem != NULL)
		return problem;
	if (head->header.sequence != 0)
		return "a sequence, though it answers nothing";
	return decode_classes(
	    record, sizeof(*head), head->class_count, head->directory_count, classes);
}

const char *
shai_decode_opened(
    struct shai_bytes record, uint64_t sequence, uint32_t asked, struct shai_opened *out)
{
	const char *problem = shai_decode_reply(record, SHAI_OPENED, sequence, out, sizeof(*out));

	if (problem != NULL)
		return problem;
	if (out->count != asked || out->reserved != 0)
		return "a count that differs from the request's";
	for (uint32_t i = 0; i < SHAI_BATCH_MAX; i++)
		if (out->status[i] < 0 || (i >= asked && out->status[i] != 0))
			return "an impossible status";
	return NULL;
}

_Static_assert(sizeof(struct shai_written) == sizeof(struct shai_chosen) &&
		   offsetof(struct shai_written, reason) == offsetof(struct shai_chosen, reason),
    "both are a verdict");

/* A record that has a status and a reason. */
static const char *
decode_verdict(struct shai_bytes record, int type, uint64_t sequence, struct shai_written *out)
{
	const char *problem = shai_decode_reply(record, type, sequence, out, sizeof(*out));

	if (problem != NULL)
		return problem;
	if (!padded(out->reason, sizeof(out->reason)))
		return "a reason that is not padded with NULs";
	if (out->status < 0 || out->reserved != 0)
		return "an impossible status";
	return NULL;
}

const char *
shai_decode_written(struct shai_bytes record, uint64_t sequence, struct shai_written *out)
{
	return decode_verdict(record, SHAI_WRITTEN, sequence, out);
}

const char *
shai_decode_chosen(struct shai_bytes record, uint64_t sequence, struct shai_chosen *out)
{
	struct shai_written verdict;
	const char *problem = decode_verdict(record, SHAI_CHOSEN, sequence, &verdict);

	if (problem == NULL)
		memcpy(out, &verdict, sizeof(*out));
	return problem;
}

const char *
shai_decode_offered(struct shai_bytes record, uint64_t sequence, struct shai_offered *head,
    char choice[SHAI_OFFERED_MAX][SHAI_POLICY_MAX])
{
	const char *problem = shai_decode_head(record, SHAI_OFFERED, head, sizeof(*head));

	if (problem != NULL)
		return problem;
	if (head->header.sequence != sequence)
		return "another request's sequence";
	if (head->count > SHAI_OFFERED_MAX ||
	    record.length != sizeof(*head) + head->count * sizeof(choice[0]))
		return "a length that is not its count's";
	if (head->status < 0 || (head->status != 0 && head->count != 0))
		return "an impossible status";
	memcpy(choice, record.start + sizeof(*head), head->count * sizeof(choice[0]));
	for (uint32_t i = 0; i < head->count; i++)
		if (!padded(choice[i], sizeof(choice[i])))
			return "a policy that is not padded with NULs";
	if (!padded(head->conduit, sizeof(head->conduit)) ||
	    !padded(head->nonce, sizeof(head->nonce)) ||
	    !padded(head->policy, sizeof(head->policy)))
		return "a text that is not padded with NULs";
	return NULL;
}

const char *
shai_decode_transfer(struct shai_bytes record, struct shai_transfer *out, size_t *count)
{
	const size_t head = offsetof(struct shai_transfer, conduit);

	if (record.length < head)
		return "shorter than a transfer's head";
	if (record.length > sizeof(*out))
		return "more conduits than a transfer can have";
	if ((record.length - head) % sizeof(out->conduit[0]) != 0)
		return "a fraction of a conduit id";
	memset(out, 0, sizeof(*out));
	memcpy(out, record.start, record.length);
	if (out->reserved != 0)
		return "something in its reserved field";
	*count = (record.length - head) / sizeof(out->conduit[0]);
	return NULL;
}

void
shai_encode_header(struct shai_header *header, int type, size_t size, uint64_t sequence)
{
	header->version = SHAI_WIRE_VERSION;
	header->type = (uint16_t)type;
	header->size = (uint32_t)size;
	header->sequence = sequence;
}

int
shai_encode_text(char *field, size_t size, const char *text)
{
	size_t length = strlen(text);

	if (length >= size)
		return -1;
	memset(field, 0, size);
	memcpy(field, text, length);
	return 0;
}

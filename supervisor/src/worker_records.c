/* SPDX-License-Identifier: BSD-2-Clause */
#include "worker_records.h"

#include <string.h>

#include "text.h"

#define FAST_OPENS_PER_SECOND 10000
#define FORWARDED_MAX (sizeof(struct shai_transfer) + 1) /* the gate receives no more */

static const char *
check_authenticate(const struct worker_record *record)
{
	if (!text_valid(record->authenticate->principal, SHAI_NAME_MAX))
		return "a principal that is not padded UTF-8";
	return NULL;
}

static const char *
check_open(const struct worker_record *record)
{
	const struct shai_open *request = record->open;

	if (request->count == 0 || request->count > SHAI_BATCH_MAX)
		return "a number of conduits out of range";
	if (request->reserved != 0)
		return "something in its reserved field";
	for (uint32_t i = request->count; i < SHAI_BATCH_MAX; i++)
		if (request->conduit[i] != 0)
			return "something after its last conduit";
	return NULL;
}

static const char *
check_write(const struct worker_record *record)
{
	const struct shai_write *request = record->write;

	if ((request->flags & ~SHAI_WRITE_REPLACE) != 0)
		return "unknown flags of a write";
	if (request->header.size != sizeof(*request) + request->size)
		return "a write whose size is not that of its content";
	if (!text_valid(request->conduit, SHAI_PREFIX_MAX))
		return "the name of a conduit that is not padded UTF-8";
	return NULL;
}

static const char *
check_choices(const struct worker_record *record)
{
	return record->choices->reserved == 0 ? NULL : "something in its reserved field";
}

static const char *
check_choose(const struct worker_record *record)
{
	if (record->choose->reserved != 0)
		return "something in its reserved field";
	if (!text_valid(record->choose->policy, SHAI_POLICY_MAX))
		return "a policy that is not padded UTF-8";
	return NULL;
}

/* Of SHAI_RESET, and of SHAI_TRANSFER: channel_check judges the record that it has. */
static const char *
check_nothing(const struct worker_record *record)
{
	(void)record;
	return NULL;
}

/* What a worker may say. An unlisted type is refused. */
static const struct rule {
	size_t size;
	size_t more;   /* so many bytes at most follow */
	bool bound;    /* only once a user has logged in */
	bool gated;    /* only by a worker that reads its channel itself */
	uint8_t limit; /* how often in one session; 0: any number */
	const char *(*check)(const struct worker_record *record);
} rules[] = {
    [SHAI_AUTHENTICATE] = {sizeof(struct shai_authenticate), 0, false, false, 3,
	check_authenticate},
    [SHAI_OPEN] = {sizeof(struct shai_open), 0, true, false, 0, check_open},
    [SHAI_RESET] = {sizeof(struct shai_reset), 0, false, false, 1, check_nothing},
    [SHAI_WRITE] = {sizeof(struct shai_write), SHAI_CONTENT_MAX, true, false, 0, check_write},
    [SHAI_CHOICES] = {sizeof(struct shai_choices), 0, true, false, 0, check_choices},
    [SHAI_CHOOSE] = {sizeof(struct shai_choose), 0, true, false, 0, check_choose},
    [SHAI_TRANSFER] = {sizeof(struct shai_header), FORWARDED_MAX, true, true, 0, check_nothing},
};

const char *
worker_decode(
    struct bytes message, struct worker_conversation *conversation, struct worker_record *out)
{
	const struct shai_header *header = message.start;
	const struct rule *rule;

	if (message.length < sizeof(*header))
		return "a message shorter than a header";
	if (header->version != SHAI_WIRE_VERSION)
		return "a message of another protocol version";
	if (header->type >= sizeof(rules) / sizeof(rules[0]) || rules[header->type].check == NULL)
		return "a message of a type that is not allowed in a session";
	rule = &rules[header->type];
	if (header->size != message.length || message.length < rule->size ||
	    message.length - rule->size > rule->more)
		return "a message whose length is not its type's";
	if (message.descriptors > 0)
		return "a message with descriptors";
	if (rule->bound && !conversation->bound)
		return "a message that is not allowed before the user has authenticated";
	if (rule->gated && !conversation->gated)
		return "a record of a channel that it does not read";
	if (rule->limit > 0 && ++conversation->messages[header->type] > rule->limit)
		return "a message that came too often in one session";
	out->type = header->type;
	out->sequence = header->sequence;
	out->authenticate = message.start;
	return rule->check(out);
}

struct shai_counters
worker_counters(const struct shai_reset *record, uint64_t seconds)
{
	struct shai_counters counters = record->counters;
	uint64_t limit;

	if (__builtin_mul_overflow(seconds + 1, (uint64_t)FAST_OPENS_PER_SECOND, &limit))
		limit = UINT64_MAX;
	if (counters.fast_opens > limit)
		counters.fast_opens = limit;
	return counters;
}

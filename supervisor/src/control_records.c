/* SPDX-License-Identifier: BSD-2-Clause */
#include "control_records.h"

#include <stdbool.h>
#include <string.h>

#include "text.h"

#define TEXT(field) text_valid(field, sizeof(field))

/* Checks a record's content, whose fixed part is complete; fills in *out. */
typedef const char *(*content)(struct bytes message, struct control *out);

static const char *
check_settings(struct bytes message, struct control *out)
{
	const struct shai_control_settings *record = out->settings;

	if (message.descriptors != 3)
		return "settings without their three descriptors";
	if (record->mode > SHAI_MODE_LAST)
		return "an unknown mode";
	if (record->slots == 0 || record->slots > SHAI_SLOTS_MAX)
		return "a number of slots out of range";
	if (record->idle_max == 0)
		return "settings that let no worker wait";
	if ((record->parameters & ~(SHAI_PARAMETER_USER | SHAI_PARAMETER_REGION)) != 0)
		return "unknown parameters";
	if (record->waiting == 0 || record->waiting > SHAI_WAITING_MAX)
		return "a number of waiting connections out of range";
	if (record->sessions_per_worker == 0 || record->reserved != 0)
		return "settings that give a worker no session";
	if (!TEXT(record->service) || !TEXT(record->pipeline))
		return "a text that is not padded UTF-8";
	return NULL;
}

static const char *
check_slot(struct bytes message, struct control *out)
{
	const struct shai_control_slot *record = out->slot;

	if (record->slot >= SHAI_SLOTS_MAX)
		return "a slot out of range";
	if (record->count > SHAI_SLOT_ENDS_MAX || message.descriptors != record->count)
		return "another number of descriptors than of ends";
	for (uint32_t i = 0; i < SHAI_SLOT_ENDS_MAX; i++) {
		const struct shai_control_end_of_slot *end = &record->end[i];

		if (i >= record->count && (end->number != 0 || end->use != 0))
			return "something after its last end";
		if (i < record->count &&
		    (end->number < SHAI_FD_PIPE || end->number >= SHAI_FD_RESERVED_END ||
			end->use > SHAI_END_READ_CHECKED))
			return "an end out of range";
	}
	return NULL;
}

static const char *
check_key(struct bytes message, struct control *out)
{
	(void)message;
	if (!TEXT(out->key->principal) || out->key->principal[0] == '\0')
		return "a principal that is not padded UTF-8";
	return out->key->present > 1 || out->key->reserved != 0 ? "a field out of range" : NULL;
}

static const char *
check_region(const struct shai_control_region *entry)
{
	if (entry->bits > 8 * SHAI_ADDRESS_SIZE || entry->reserved != 0)
		return "a prefix out of range";
	for (uint32_t bit = entry->bits; bit < 8 * SHAI_ADDRESS_SIZE; bit++)
		if ((entry->address[bit / 8] & (0x80 >> bit % 8)) != 0)
			return "an address with bits after its prefix";
	if (!TEXT(entry->region))
		return "a region that is not padded UTF-8";
	return NULL;
}

static const char *
check_regions(struct bytes message, struct control *out)
{
	const struct shai_control_regions *record = out->regions;
	const char *problem = NULL;

	if (record->first > 1 || record->last > 1 || record->reserved != 0)
		return "a field out of range";
	out->region = (const void *)(record + 1);
	if (record->count > SHAI_REGIONS_MAX ||
	    message.length != sizeof(*record) + record->count * sizeof(*out->region))
		return "a length that is not its count's";
	for (uint32_t i = 0; i < record->count && problem == NULL; i++)
		problem = check_region(&out->region[i]);
	return problem;
}

static const char *
check_set(struct bytes message, struct control *out)
{
	const struct shai_control_set *record = out->set;

	out->classes = (const void *)(record + 1);
	if (record->class_count > SHAI_CLASSES_MAX ||
	    message.length != sizeof(*record) + record->class_count * sizeof(*out->classes))
		return "a length that is not its count's";
	if ((record->flags & ~(SHAI_SET_ANALYZED | SHAI_SET_LEAVES | SHAI_SET_LIVE)) != 0)
		return "unknown flags";
	if (record->expires < 0 || record->ends < 0)
		return "an impossible time";
	if (!TEXT(record->principal) || !TEXT(record->region) || !TEXT(record->instance) ||
	    !TEXT(record->kv_user) || !TEXT(record->kv_password))
		return "a text that is not padded UTF-8";
	/* Conduits that are no documents have class 0, which no set may hold. */
	for (uint32_t i = 0; i < record->class_count; i++)
		if (out->classes[i] <= (i == 0 ? 0 : out->classes[i - 1]))
			return "classes that are not ascending";
	return NULL;
}

static const char *
check_forget(struct bytes message, struct control *out)
{
	const struct shai_control_forget *record = out->forget;

	(void)message;
	if ((record->flags & ~SHAI_FORGET_END) != 0 || record->reserved != 0)
		return "unknown flags";
	if (!TEXT(record->principal) || !TEXT(record->region) || !TEXT(record->reason))
		return "a text that is not padded UTF-8";
	return NULL;
}

static const char *
check_mode(struct bytes message, struct control *out)
{
	(void)message;
	return out->mode->mode > SHAI_MODE_LAST || out->mode->reserved != 0 ? "an unknown mode"
									    : NULL;
}

static const char *
check_nothing(struct bytes message, struct control *out)
{
	(void)message;
	(void)out;
	return NULL;
}

static const char *
check_end(struct bytes message, struct control *out)
{
	(void)message;
	return TEXT(out->end->reason) ? NULL : "a reason that is not padded UTF-8";
}

static const char *
check_bind(struct bytes message, struct control *out)
{
	(void)message;
	if (out->bind->status < 0 || out->bind->reserved != 0)
		return "an impossible status";
	return TEXT(out->bind->reason) ? NULL : "a reason that is not padded UTF-8";
}

static const char *
check_relay(struct bytes message, struct control *out)
{
	struct shai_header header;

	out->relayed = (struct bytes){.start = out->relay + 1,
	    .length = message.length - sizeof(*out->relay),
	    .descriptors = message.descriptors};
	if (out->relayed.length < sizeof(header))
		return "a relay of less than a header";
	memcpy(&header, out->relayed.start, sizeof(header));
	return header.size == out->relayed.length ? NULL : "a relay of less or more than a record";
}

static const char *
check_credits(struct bytes message, struct control *out)
{
	(void)message;
	return out->credits->reserved == 0 ? NULL : "something in its reserved field";
}

static const char *
check_store(struct bytes message, struct control *out)
{
	const struct shai_control_store *record = out->store;

	(void)message;
	if (record->reserved != 0)
		return "something in its reserved field";
	if (!TEXT(record->path) || !TEXT(record->auth) || !TEXT(record->reset))
		return "a text that is not padded UTF-8";
	if (record->path[0] != '/' || record->auth[0] == '\0' || record->reset[0] == '\0')
		return "a store without path or commands";
	return NULL;
}

static const char *
check_sealed(struct bytes message, struct control *out)
{
	(void)message;
	return out->sealed->reserved == 0 ? NULL : "something in its reserved field";
}

static const char *
check_compared(struct bytes message, struct control *out)
{
	(void)message;
	return out->compared->equal <= 1 ? NULL : "a field out of range";
}

#define HEADER sizeof(struct shai_control_header)

/* An unlisted type is refused. */
static const struct rule {
	size_t size;
	bool grows;       /* something follows the fixed part */
	bool descriptors; /* some come with it; its check says how many */
	content check;
} rules[] = {
    [SHAI_CONTROL_SETTINGS] = {sizeof(struct shai_control_settings), false, true, check_settings},
    [SHAI_CONTROL_SLOT] = {sizeof(struct shai_control_slot), false, true, check_slot},
    [SHAI_CONTROL_BEGIN] = {HEADER, false, false, check_nothing},
    [SHAI_CONTROL_KEY] = {sizeof(struct shai_control_key), false, false, check_key},
    [SHAI_CONTROL_REGIONS] = {sizeof(struct shai_control_regions), true, false, check_regions},
    [SHAI_CONTROL_SET] = {sizeof(struct shai_control_set), true, false, check_set},
    [SHAI_CONTROL_FORGET] = {sizeof(struct shai_control_forget), false, false, check_forget},
    [SHAI_CONTROL_MODE] = {sizeof(struct shai_control_mode), false, false, check_mode},
    [SHAI_CONTROL_FENCE] = {sizeof(struct shai_control_fence), false, false, check_nothing},
    [SHAI_CONTROL_TERMINATE] = {HEADER, false, false, check_nothing},
    [SHAI_CONTROL_END] = {sizeof(struct shai_control_end), false, false, check_end},
    [SHAI_CONTROL_BIND] = {sizeof(struct shai_control_bind), false, false, check_bind},
    [SHAI_CONTROL_RELAY] = {sizeof(struct shai_control_relay), true, true, check_relay},
    [SHAI_CONTROL_CREDITS] = {sizeof(struct shai_control_credits), false, false, check_credits},
    [SHAI_CONTROL_STORE] = {sizeof(struct shai_control_store), false, false, check_store},
    [SHAI_CONTROL_SEALED] = {sizeof(struct shai_control_sealed), false, false, check_sealed},
    [SHAI_CONTROL_COMPARED] = {sizeof(struct shai_control_compared), false, false, check_compared},
};

const char *
control_decode(struct bytes message, struct control *out)
{
	const struct shai_control_header *header = message.start;
	const struct rule *rule;

	if (message.length < sizeof(*header))
		return "shorter than a header";
	if (header->version != SHAI_CONTROL_VERSION)
		return "another version";
	if (header->size != message.length)
		return "a size that is not its length";
	if (header->type >= sizeof(rules) / sizeof(rules[0]) || rules[header->type].check == NULL)
		return "an unknown type";
	rule = &rules[header->type];
	if (message.length < rule->size || (message.length > rule->size && !rule->grows))
		return "a length that is not its type's";
	if (message.descriptors > 0 && !rule->descriptors)
		return "descriptors that its type does not have";
	memset(out, 0, sizeof(*out));
	out->type = header->type;
	out->settings = message.start;
	return rule->check(message, out);
}

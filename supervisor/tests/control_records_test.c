/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The decoder of control records on valid records, and on records with one thing wrong.
 */
#include "testing.h"

#include "control_records.h"
#include "text.h"

#define CLASSES 3
#define REGIONS 2

/* Room for the largest record, and a byte more. */
static _Alignas(8) uint8_t buffer[SHAI_CONTROL_MAX + 1];

static const struct kind {
	uint16_t type;
	size_t size;
	size_t descriptors;
} kinds[] = {
    {SHAI_CONTROL_SETTINGS, sizeof(struct shai_control_settings), 3},
    {SHAI_CONTROL_SLOT, sizeof(struct shai_control_slot), 2},
    {SHAI_CONTROL_BEGIN, sizeof(struct shai_control_header), 0},
    {SHAI_CONTROL_KEY, sizeof(struct shai_control_key), 0},
    {SHAI_CONTROL_REGIONS,
	sizeof(struct shai_control_regions) + REGIONS * sizeof(struct shai_control_region), 0},
    {SHAI_CONTROL_SET, sizeof(struct shai_control_set) + CLASSES * sizeof(uint32_t), 0},
    {SHAI_CONTROL_FORGET, sizeof(struct shai_control_forget), 0},
    {SHAI_CONTROL_MODE, sizeof(struct shai_control_mode), 0},
    {SHAI_CONTROL_FENCE, sizeof(struct shai_control_fence), 0},
    {SHAI_CONTROL_TERMINATE, sizeof(struct shai_control_header), 0},
    {SHAI_CONTROL_END, sizeof(struct shai_control_end), 0},
    {SHAI_CONTROL_BIND, sizeof(struct shai_control_bind), 0},
    {SHAI_CONTROL_RELAY, sizeof(struct shai_control_relay) + sizeof(struct shai_opened), 5},
    {SHAI_CONTROL_CREDITS, sizeof(struct shai_control_credits), 0},
    {SHAI_CONTROL_STORE, sizeof(struct shai_control_store), 0},
    {SHAI_CONTROL_SEALED, sizeof(struct shai_control_sealed), 0},
    {SHAI_CONTROL_COMPARED, sizeof(struct shai_control_compared), 0},
};

static void
fill_regions(struct shai_control_regions *record)
{
	struct shai_control_region *entry = (void *)(record + 1);

	record->first = record->last = 1;
	record->count = REGIONS;
	entry[0].address[0] = 0x20;
	entry[0].bits = 4;
	text_copy(entry[0].region, SHAI_NAME_MAX, "de");
	memset(entry[1].address, 0xff, SHAI_ADDRESS_SIZE);
	entry[1].bits = 128;
}

static void
fill_set(struct shai_control_set *record)
{
	uint32_t *classes = (void *)(record + 1);

	text_copy(record->principal, SHAI_NAME_MAX, "zo\xc3\xab");
	text_copy(record->instance, SHAI_NAME_MAX, "worker(zo\xc3\xab)");
	record->flags = SHAI_SET_ANALYZED | SHAI_SET_LEAVES | SHAI_SET_LIVE;
	record->class_count = CLASSES;
	for (uint32_t i = 0; i < CLASSES; i++)
		classes[i] = 7 * (i + 1);
}

static void
fill_slot(struct shai_control_slot *record)
{
	record->count = 2;
	record->end[0] = (struct shai_control_end_of_slot){SHAI_FD_PIPE, 1};
	record->end[1] = (struct shai_control_end_of_slot){SHAI_FD_CHANNEL, 0};
}

static void
fill_settings(struct shai_control_settings *record)
{
	record->mode = SHAI_MODE_SHAI;
	record->slots = SHAI_SLOTS_MAX;
	record->idle_max = 1;
	record->waiting = SHAI_WAITING_MAX;
	record->sessions_per_worker = 1;
	record->parameters = SHAI_PARAMETER_USER;
	text_copy(record->service, SHAI_NAME_MAX, "local");
}

/* Makes a valid record in the buffer. */
static struct bytes
valid(const struct kind *kind)
{
	struct shai_control_header *header = (void *)buffer;
	struct shai_header *relayed = (void *)(buffer + sizeof(struct shai_control_relay));
	struct shai_control_store *store = (void *)buffer;

	memset(buffer, 0, sizeof(buffer));
	*header = (struct shai_control_header){
	    .type = kind->type, .version = SHAI_CONTROL_VERSION, .size = (uint32_t)kind->size};
	switch (kind->type) {
	case SHAI_CONTROL_SETTINGS:
		fill_settings((void *)buffer);
		break;
	case SHAI_CONTROL_SLOT:
		fill_slot((void *)buffer);
		break;
	case SHAI_CONTROL_KEY:
		text_copy(((struct shai_control_key *)(void *)buffer)->principal, 96, "alice");
		break;
	case SHAI_CONTROL_REGIONS:
		fill_regions((void *)buffer);
		break;
	case SHAI_CONTROL_SET:
		fill_set((void *)buffer);
		break;
	case SHAI_CONTROL_RELAY:
		relayed->size = sizeof(struct shai_opened);
		break;
	case SHAI_CONTROL_STORE:
		text_copy(store->path, sizeof(store->path), "/run/store");
		text_copy(store->auth, sizeof(store->auth), "auth-1");
		text_copy(store->reset, sizeof(store->reset), "reset-1");
		break;
	default:
		break;
	}
	return (struct bytes){buffer, kind->size, kind->descriptors};
}

static const char *
decode(struct bytes message)
{
	struct control out;

	return control_decode(message, &out);
}

static void
valid_records_are_decoded(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct control out;
		struct bytes message = valid(&kinds[i]);
		const char *problem = control_decode(message, &out);

		if (problem != NULL)
			fail_msg("type %d: %s", kinds[i].type, problem);
		assert_int_equal(out.type, kinds[i].type);
		assert_ptr_equal(out.set, buffer);
		if (out.type == SHAI_CONTROL_SET)
			assert_int_equal(out.classes[2], 21);
		if (out.type == SHAI_CONTROL_REGIONS)
			assert_string_equal(out.region[0].region, "de");
		if (out.type == SHAI_CONTROL_RELAY) {
			assert_int_equal(out.relayed.length, sizeof(struct shai_opened));
			assert_int_equal(out.relayed.descriptors, 5);
		}
	}
}

static void
other_lengths_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct bytes message = valid(&kinds[i]);
		struct shai_control_header *header = (void *)buffer;

		for (size_t length = 0; length <= kinds[i].size + 1; length++) {
			if (length == kinds[i].size)
				continue;
			message.length = length;
			header->size = (uint32_t)kinds[i].size;
			assert_non_null(decode(message));
			header->size = (uint32_t)length; /* the header says so, too */
			assert_non_null(decode(message));
		}
	}
}

static void
other_numbers_of_descriptors_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct bytes message = valid(&kinds[i]);

		if (kinds[i].type == SHAI_CONTROL_RELAY)
			continue; /* any number */
		message.descriptors++;
		assert_non_null(decode(message));
		if (kinds[i].descriptors > 0) {
			message.descriptors = kinds[i].descriptors - 1;
			assert_non_null(decode(message));
		}
	}
}

static void
unlisted_types_and_versions_are_refused(void **state)
{
	const uint16_t types[] = {
	    0, SHAI_CONTROL_STORE + 1, SHAI_CONTROL_STARTED, SHAI_CONTROL_COUNTS, UINT16_MAX};
	struct shai_control_header *header = (void *)buffer;

	(void)state;
	for (size_t i = 0; i < COUNT(types); i++) {
		struct bytes message = valid(&kinds[2]);

		header->type = types[i];
		assert_non_null(decode(message));
	}
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct bytes message = valid(&kinds[i]);

		header->version++;
		assert_non_null(decode(message));
	}
}

#define AT(structure, field)                                                                       \
	offsetof(struct structure, field), sizeof(((struct structure *)0)->field)
#define REGION(n, field)                                                                           \
	sizeof(struct shai_control_regions) + (n) * sizeof(struct shai_control_region) +           \
	    AT(shai_control_region, field)
#define CLASS(n) sizeof(struct shai_control_set) + (n) * sizeof(uint32_t), sizeof(uint32_t)
#define TEXT 0xaa /* fills a field: it is then neither terminated nor UTF-8 */

/* One field wrong at a time: each byte of it becomes value. */
static const struct damage {
	uint16_t type;
	size_t offset, size;
	uint8_t value;
} damages[] = {
    {SHAI_CONTROL_SETTINGS, AT(shai_control_settings, mode), 1},
    {SHAI_CONTROL_SETTINGS, AT(shai_control_settings, slots), 0},
    {SHAI_CONTROL_SETTINGS, AT(shai_control_settings, slots), 1},
    {SHAI_CONTROL_SETTINGS, AT(shai_control_settings, idle_max), 0},
    {SHAI_CONTROL_SETTINGS, AT(shai_control_settings, parameters), 4},
    {SHAI_CONTROL_SETTINGS, AT(shai_control_settings, waiting), 0},
    {SHAI_CONTROL_SETTINGS, AT(shai_control_settings, waiting), 1},
    {SHAI_CONTROL_SETTINGS, AT(shai_control_settings, sessions_per_worker), 0},
    {SHAI_CONTROL_SETTINGS, AT(shai_control_settings, reserved), 1},
    {SHAI_CONTROL_SETTINGS, AT(shai_control_settings, service), TEXT},
    {SHAI_CONTROL_SETTINGS, AT(shai_control_settings, pipeline), TEXT},
    {SHAI_CONTROL_SLOT, AT(shai_control_slot, slot), 1},
    {SHAI_CONTROL_SLOT, AT(shai_control_slot, count), 1},
    {SHAI_CONTROL_SLOT, AT(shai_control_slot, end[0].number), 0},
    {SHAI_CONTROL_SLOT, AT(shai_control_slot, end[1].number), 0xff},
    {SHAI_CONTROL_SLOT, AT(shai_control_slot, end[1].use), 3},
    {SHAI_CONTROL_SLOT, AT(shai_control_slot, end[2].number), 1},
    {SHAI_CONTROL_SLOT, AT(shai_control_slot, end[7].use), 1},
    {SHAI_CONTROL_KEY, AT(shai_control_key, principal), TEXT},
    {SHAI_CONTROL_KEY, AT(shai_control_key, principal), 0},
    {SHAI_CONTROL_KEY, AT(shai_control_key, present), 2},
    {SHAI_CONTROL_KEY, AT(shai_control_key, reserved), 1},
    {SHAI_CONTROL_REGIONS, AT(shai_control_regions, first), 2},
    {SHAI_CONTROL_REGIONS, AT(shai_control_regions, last), 2},
    {SHAI_CONTROL_REGIONS, AT(shai_control_regions, count), 1},
    {SHAI_CONTROL_REGIONS, AT(shai_control_regions, reserved), 1},
    {SHAI_CONTROL_REGIONS, REGION(0, address[0]), 0x28},
    {SHAI_CONTROL_REGIONS, REGION(0, address[15]), 1},
    {SHAI_CONTROL_REGIONS, REGION(1, bits), 129},
    {SHAI_CONTROL_REGIONS, REGION(1, reserved), 1},
    {SHAI_CONTROL_REGIONS, REGION(1, region), TEXT},
    {SHAI_CONTROL_SET, AT(shai_control_set, principal), TEXT},
    {SHAI_CONTROL_SET, AT(shai_control_set, region), TEXT},
    {SHAI_CONTROL_SET, AT(shai_control_set, instance), TEXT},
    {SHAI_CONTROL_SET, AT(shai_control_set, kv_user), TEXT},
    {SHAI_CONTROL_SET, AT(shai_control_set, kv_password), TEXT},
    {SHAI_CONTROL_SET, AT(shai_control_set, flags), 8},
    {SHAI_CONTROL_SET, AT(shai_control_set, class_count), 0},
    {SHAI_CONTROL_SET, AT(shai_control_set, class_count), 0xff},
    {SHAI_CONTROL_SET, AT(shai_control_set, expires), 0xff},
    {SHAI_CONTROL_SET, AT(shai_control_set, ends), 0xff},
    {SHAI_CONTROL_SET, CLASS(0), 0},
    {SHAI_CONTROL_SET, CLASS(1), 0},
    {SHAI_CONTROL_SET, CLASS(1), 0xff},
    {SHAI_CONTROL_FORGET, AT(shai_control_forget, principal), TEXT},
    {SHAI_CONTROL_FORGET, AT(shai_control_forget, region), TEXT},
    {SHAI_CONTROL_FORGET, AT(shai_control_forget, reason), TEXT},
    {SHAI_CONTROL_FORGET, AT(shai_control_forget, flags), 2},
    {SHAI_CONTROL_FORGET, AT(shai_control_forget, reserved), 1},
    {SHAI_CONTROL_MODE, AT(shai_control_mode, mode), 4},
    {SHAI_CONTROL_MODE, AT(shai_control_mode, reserved), 1},
    {SHAI_CONTROL_END, AT(shai_control_end, reason), TEXT},
    {SHAI_CONTROL_BIND, AT(shai_control_bind, status), 0xff},
    {SHAI_CONTROL_BIND, AT(shai_control_bind, reserved), 1},
    {SHAI_CONTROL_BIND, AT(shai_control_bind, reason), TEXT},
    {SHAI_CONTROL_RELAY, sizeof(struct shai_control_relay) + AT(shai_header, size), 1},
    {SHAI_CONTROL_CREDITS, AT(shai_control_credits, reserved), 1},
    {SHAI_CONTROL_STORE, AT(shai_control_store, path), 0},
    {SHAI_CONTROL_STORE, AT(shai_control_store, path), TEXT},
    {SHAI_CONTROL_STORE, AT(shai_control_store, auth), 0},
    {SHAI_CONTROL_STORE, AT(shai_control_store, auth), TEXT},
    {SHAI_CONTROL_STORE, AT(shai_control_store, reset), 0},
    {SHAI_CONTROL_STORE, AT(shai_control_store, reset), TEXT},
    {SHAI_CONTROL_STORE, AT(shai_control_store, reserved), 1},
    {SHAI_CONTROL_SEALED, AT(shai_control_sealed, reserved), 1},
    {SHAI_CONTROL_COMPARED, AT(shai_control_compared, equal), 2},
};

static void
wrong_fields_are_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(damages); i++) {
		const struct damage *damage = &damages[i];
		const struct kind *kind = kinds;
		struct bytes message;

		while (kind->type != damage->type)
			kind++;
		message = valid(kind);
		memset(buffer + damage->offset, damage->value, damage->size);
		if (decode(message) == NULL)
			fail_msg("type %d with %#x at %zu is accepted", damage->type, damage->value,
			    damage->offset);
	}
}

static void
texts_are_padded_utf_8(void **state)
{
	static const struct {
		const char *bytes;
		bool valid;
	} texts[] = {
	    {"\0\0\0\0\0\0\0", true},
	    {"abcdefg", true},
	    {"abc\0\0\0\0", true},
	    {"abc\0\0\0d", false},
	    {"\xc3\xab\0\0\0\0\0", true},
	    {"\xe2\x82\xac\0\0\0\0", true},
	    {"\xf0\x9f\x98\x80\0\0\0", true},
	    {"\xc3\0\0\0\0\0\0", false},
	    {"\xe2\x82\0\0\0\0\0", false},
	    {"abcdef\xc3", false},
	    {"\xc0\x80\0\0\0\0\0", false},     /* longer than needed */
	    {"\xe0\x80\x80\0\0\0\0", false},   /* longer than needed */
	    {"\xed\xa0\x80\0\0\0\0", false},   /* a surrogate */
	    {"\xf4\x90\x80\x80\0\0\0", false}, /* above U+10FFFF */
	    {"\xf5\x80\x80\x80\0\0\0", false},
	    {"\x80\0\0\0\0\0\0", false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++)
		assert_int_equal(text_valid(texts[i].bytes, 8), texts[i].valid);
	assert_false(text_valid("abcdefgh", 8));
}

static void
long_texts_are_cut_before_a_character(void **state)
{
	char field[6];

	(void)state;
	text_copy(field, sizeof(field), "abcde\xc3\xab");
	assert_string_equal(field, "abcde");
	text_copy(field, sizeof(field), "abcd\xc3\xab");
	assert_string_equal(field, "abcd");
	assert_true(text_valid(field, sizeof(field)));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(valid_records_are_decoded),
	    cmocka_unit_test(other_lengths_are_refused),
	    cmocka_unit_test(other_numbers_of_descriptors_are_refused),
	    cmocka_unit_test(unlisted_types_and_versions_are_refused),
	    cmocka_unit_test(wrong_fields_are_refused),
	    cmocka_unit_test(texts_are_padded_utf_8),
	    cmocka_unit_test(long_texts_are_cut_before_a_character),
	};

	return cmocka_run_group_tests_name("control records", tests, NULL, NULL);
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The tables that the monitor's records make: keys, capability sets, regions.
 */
#include "testing.h"

#include <errno.h>
#include <time.h>

#include "keys.h"
#include "regions.h"
#include "sets.h"
#include "text.h"

/* -------------------------------------------------------------------- keys */

static void
put_key(struct keys *keys, const char *name, uint8_t first, bool present)
{
	struct shai_control_key record = {.key = {first}, .present = present};

	text_copy(record.principal, sizeof(record.principal), name);
	assert_int_equal(keys_apply(keys, &record), 0);
}

static void
keys_are_replaced_and_removed(void **state)
{
	struct keys keys = {NULL};

	(void)state;
	assert_null(keys_find(&keys, "alice"));
	put_key(&keys, "alice", 1, true);
	put_key(&keys, "bob", 2, true);
	assert_int_equal(keys_find(&keys, "alice")->key[0], 1);
	put_key(&keys, "alice", 3, true);
	assert_int_equal(keys_find(&keys, "alice")->key[0], 3);
	put_key(&keys, "alice", 0, false);
	put_key(&keys, "carol", 0, false);
	assert_null(keys_find(&keys, "alice"));
	assert_int_equal(keys_find(&keys, "bob")->key[0], 2);
	keys_free(&keys);
}

static void
sessions_of_a_principal_are_limited(void **state)
{
	struct keys keys = {NULL};
	struct principal *alice;

	(void)state;
	put_key(&keys, "alice", 1, true);
	alice = keys_find(&keys, "alice");
	assert_true(keys_enter(alice, 2));
	assert_true(keys_enter(alice, 2));
	assert_false(keys_enter(alice, 2));
	assert_true(keys_enter(alice, 0));
	keys_leave(&keys, alice);
	keys_leave(&keys, alice);
	assert_true(keys_enter(alice, 2));
	keys_free(&keys);
}

/* A removed principal cannot log in; its sessions go on, and count when it comes back. */
static void
removed_principals_stay_while_they_have_sessions(void **state)
{
	struct keys keys = {NULL};
	struct principal *alice;

	(void)state;
	put_key(&keys, "alice", 1, true);
	alice = keys_find(&keys, "alice");
	assert_true(keys_enter(alice, 1));
	put_key(&keys, "alice", 0, false);
	assert_null(keys_find(&keys, "alice"));
	put_key(&keys, "alice", 2, true);
	assert_ptr_equal(keys_find(&keys, "alice"), alice);
	assert_false(keys_enter(alice, 1));
	put_key(&keys, "alice", 0, false);
	keys_leave(&keys, alice); /* frees it */
	assert_null(keys.tree);
}

/* -------------------------------------------------------------------- sets */

static void
put_set(
    struct sets *sets, const char *principal, const char *region, uint32_t class, int64_t expires)
{
	struct shai_control_set record = {.class_count = 2, .expires = expires};
	const uint32_t classes[] = {class, class + 10};

	text_copy(record.principal, sizeof(record.principal), principal);
	text_copy(record.region, sizeof(record.region), region);
	text_copy(record.kv_password, sizeof(record.kv_password), "secret");
	assert_int_equal(sets_apply(sets, &record, classes), 0);
}

static struct shai_control_forget
forget(const char *principal, const char *region)
{
	struct shai_control_forget record = {0};

	text_copy(record.principal, sizeof(record.principal), principal);
	text_copy(record.region, sizeof(record.region), region);
	return record;
}

/* Returns the first class of a set, 0 if there is none. */
static uint32_t
first_class(struct sets *sets, const char *principal, const char *region, int64_t now)
{
	struct set *set = sets_hold(sets, principal, region, now);
	uint32_t class = set == NULL ? 0 : set->classes[0];

	set_release(set);
	return class;
}

static void
sets_are_found_by_principal_and_region(void **state)
{
	struct sets sets = {NULL};

	(void)state;
	put_set(&sets, "alice", "de", 1, 0);
	put_set(&sets, "alice", "us", 2, 0);
	put_set(&sets, "alice", "", 3, 0);
	put_set(&sets, "", "de", 4, 0);
	assert_int_equal(first_class(&sets, "alice", "de", 5), 1);
	assert_int_equal(first_class(&sets, "alice", "us", 5), 2);
	assert_int_equal(first_class(&sets, "alice", "", 5), 3);
	assert_int_equal(first_class(&sets, "", "de", 5), 4);
	assert_int_equal(first_class(&sets, "alice", "fr", 5), 0);
	assert_int_equal(first_class(&sets, "alicede", "", 5), 0);
	sets_free(&sets);
}

static void
a_held_set_outlives_its_replacement(void **state)
{
	struct sets sets = {NULL};
	struct set *held;

	(void)state;
	put_set(&sets, "alice", "de", 1, 0);
	held = sets_hold(&sets, "alice", "de", 5);
	put_set(&sets, "alice", "de", 2, 0);
	assert_int_equal(first_class(&sets, "alice", "de", 5), 2);
	assert_true(set_has_class(held, 1));
	assert_true(set_has_class(held, 11));
	assert_false(set_has_class(held, 2));
	assert_false(set_has_class(held, 0));
	set_release(held);
	sets_free(&sets);
}

static void
forgotten_sets_are_gone(void **state)
{
	struct sets sets = {NULL};
	struct shai_control_forget one = forget("alice", "de"), other = forget("bob", "de");
	struct set *held;

	(void)state;
	put_set(&sets, "alice", "de", 1, 0);
	put_set(&sets, "alice", "us", 2, 0);
	put_set(&sets, "bob", "de", 3, 0);
	held = sets_hold(&sets, "bob", "de", 5);
	sets_forget(&sets, &one);
	sets_forget(&sets, &one);
	assert_int_equal(first_class(&sets, "alice", "de", 5), 0);
	assert_int_equal(first_class(&sets, "alice", "us", 5), 2);
	assert_false(set_named(held, one.principal, one.region));
	sets_forget(&sets, &other);
	assert_int_equal(first_class(&sets, "bob", "de", 5), 0);
	assert_true(set_named(held, other.principal, other.region));
	assert_true(set_has_class(held, 3));
	set_release(held);
	sets_free(&sets);
}

static void
expired_sets_are_not_found(void **state)
{
	struct sets sets = {NULL};

	(void)state;
	put_set(&sets, "alice", "de", 1, 100);
	put_set(&sets, "bob", "de", 2, 0);
	assert_int_equal(first_class(&sets, "alice", "de", 99), 1);
	assert_int_equal(first_class(&sets, "alice", "de", 100), 0);
	assert_int_equal(first_class(&sets, "alice", "de", 99), 1); /* the clock was set back */
	assert_int_equal(first_class(&sets, "bob", "de", INT64_MAX), 2);
	sets_free(&sets);
}

/* ----------------------------------------------------------------- regions */

static struct shai_control_region
prefix(uint8_t first, uint8_t second, uint32_t bits, const char *region)
{
	struct shai_control_region entry = {.address = {first, second}, .bits = bits};

	text_copy(entry.region, sizeof(entry.region), region);
	return entry;
}

static int
put_regions(struct regions *regions, bool first, bool last,
    const struct shai_control_region *entries, uint32_t count)
{
	struct shai_control_regions record = {.first = first, .last = last, .count = count};

	return regions_apply(regions, &record, entries);
}

static const char *
region_of(const struct regions *regions, uint8_t first, uint8_t second)
{
	const uint8_t address[SHAI_ADDRESS_SIZE] = {first, second, 1};

	return regions_find(regions, address);
}

static void
the_longest_prefix_wins(void **state)
{
	struct regions regions = {.begun = false};
	const struct shai_control_region entries[] = {prefix(0x20, 0, 4, "wide"),
	    prefix(0x21, 0x80, 9, "half"), prefix(0x21, 0, 8, "eight"),
	    prefix(0x21, 0x90, 16, "narrow")};

	(void)state;
	assert_string_equal(region_of(&regions, 0x20, 0), "");
	assert_int_equal(put_regions(&regions, true, true, entries, COUNT(entries)), 0);
	assert_string_equal(region_of(&regions, 0x2f, 0), "wide");
	assert_string_equal(region_of(&regions, 0x21, 0x10), "eight");
	assert_string_equal(region_of(&regions, 0x21, 0x81), "half");
	assert_string_equal(region_of(&regions, 0x21, 0x90), "narrow");
	assert_string_equal(region_of(&regions, 0x30, 0), "");
	regions_free(&regions);
}

static void
a_table_is_in_force_when_it_is_whole(void **state)
{
	struct regions regions = {.begun = false};
	const struct shai_control_region old = prefix(0x20, 0, 8, "old"),
					 one = prefix(0x20, 0, 8, "new"),
					 two = prefix(0x30, 0, 8, "other");

	(void)state;
	assert_int_equal(put_regions(&regions, true, true, &old, 1), 0);
	assert_int_equal(put_regions(&regions, false, true, &one, 1), -1);
	assert_int_equal(errno, EPROTO);
	assert_int_equal(put_regions(&regions, true, false, &two, 1), 0); /* given up */
	assert_int_equal(put_regions(&regions, true, false, &one, 1), 0);
	assert_string_equal(region_of(&regions, 0x20, 0), "old");
	assert_int_equal(put_regions(&regions, false, true, NULL, 0), 0);
	assert_string_equal(region_of(&regions, 0x20, 0), "new");
	assert_string_equal(region_of(&regions, 0x30, 0), "");
	assert_int_equal(put_regions(&regions, true, true, NULL, 0), 0);
	assert_string_equal(region_of(&regions, 0x20, 0), "");
	regions_free(&regions);
}

static bool
covers(const struct shai_control_region *entry, const uint8_t *address)
{
	for (uint32_t bit = 0; bit < entry->bits; bit++)
		if (((entry->address[bit / 8] ^ address[bit / 8]) & (0x80 >> bit % 8)) != 0)
			return false;
	return true;
}

/* A random table of short prefixes, so that many overlap, against a search of all. */
static void
regions_are_those_of_a_search_of_all(void **state)
{
	unsigned int seed = (unsigned int)time(NULL);
	struct shai_control_region entries[60];
	struct regions regions = {.begun = false};

	(void)state;
	print_message("seed %u\n", seed);
	srand(seed);
	for (size_t i = 0; i < COUNT(entries); i++) {
		uint32_t bits = (uint32_t)rand() % 11;
		uint32_t number = (uint32_t)rand() & (0xffffu << (16 - bits)) & 0xffff;
		char name[16];

		/* Equal prefixes have equal names. */
		snprintf(name, sizeof(name), "%x/%u", number, bits);
		entries[i] = prefix((uint8_t)(number >> 8), (uint8_t)number, bits, name);
	}
	assert_int_equal(put_regions(&regions, true, true, entries, COUNT(entries)), 0);
	for (uint32_t number = 0; number < 0x10000; number += 32) {
		const uint8_t address[SHAI_ADDRESS_SIZE] = {
		    (uint8_t)(number >> 8), (uint8_t)number};
		const struct shai_control_region *longest = NULL;

		for (size_t i = 0; i < COUNT(entries); i++)
			if (covers(&entries[i], address) &&
			    (longest == NULL || entries[i].bits > longest->bits))
				longest = &entries[i];
		assert_string_equal(
		    regions_find(&regions, address), longest == NULL ? "" : longest->region);
	}
	regions_free(&regions);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(keys_are_replaced_and_removed),
	    cmocka_unit_test(sessions_of_a_principal_are_limited),
	    cmocka_unit_test(removed_principals_stay_while_they_have_sessions),
	    cmocka_unit_test(sets_are_found_by_principal_and_region),
	    cmocka_unit_test(a_held_set_outlives_its_replacement),
	    cmocka_unit_test(forgotten_sets_are_gone),
	    cmocka_unit_test(expired_sets_are_not_found),
	    cmocka_unit_test(the_longest_prefix_wins),
	    cmocka_unit_test(a_table_is_in_force_when_it_is_whole),
	    cmocka_unit_test(regions_are_those_of_a_search_of_all),
	};

	return cmocka_run_group_tests_name("tables", tests, NULL, NULL);
}

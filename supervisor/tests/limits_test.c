/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Connections of a peer, and events about it.
 */
#include "testing.h"

#include "limits.h"

#define SECOND LIMITS_INTERVAL

static struct limits limits;

static int
clear(void **state)
{
	(void)state;
	memset(&limits, 0, sizeof(limits));
	return 0;
}

struct address {
	uint8_t bytes[SHAI_ADDRESS_SIZE];
};

static struct address
four(uint32_t number)
{
	return (struct address){{[10] = 0xff,
	    [11] = 0xff,
	    [12] = 10,
	    [13] = (uint8_t)(number >> 16),
	    [14] = (uint8_t)(number >> 8),
	    [15] = (uint8_t)number}};
}

static struct address
six(uint8_t network, uint8_t host)
{
	return (struct address){{0x20, 0x01, [7] = network, [15] = host}};
}

static struct peer *
enter(struct address address, uint32_t limit)
{
	return limits_enter(&limits, address.bytes, limit, 0);
}

static bool
reports(struct address address, int64_t now, uint32_t expected)
{
	uint32_t withheld = UINT32_MAX;

	return limits_report(&limits, address.bytes, now, &withheld) && withheld == expected;
}

static void
connections_of_an_address_are_limited(void **state)
{
	struct peer *first = enter(four(1), 2);

	(void)state;
	assert_non_null(first);
	assert_ptr_equal(enter(four(1), 2), first);
	assert_null(enter(four(1), 2));
	assert_non_null(enter(four(2), 2));
	limits_leave(first);
	assert_non_null(enter(four(1), 2));
	assert_non_null(enter(four(1), 0));
}

static void
a_network_of_version_6_is_one_peer(void **state)
{
	(void)state;
	assert_non_null(enter(six(1, 1), 2));
	assert_non_null(enter(six(1, 2), 2));
	assert_null(enter(six(1, 3), 2));
	assert_non_null(enter(six(2, 3), 2));
}

static void
one_event_a_second_is_sent(void **state)
{
	(void)state;
	assert_true(reports(four(1), 5 * SECOND, 0));
	assert_false(reports(four(1), 5 * SECOND, 0));
	assert_false(reports(four(1), 6 * SECOND - 1, 0));
	assert_true(reports(four(2), 5 * SECOND, 0));
	assert_true(reports(four(1), 6 * SECOND, 2));
	assert_true(reports(four(1), 7 * SECOND, 0));
}

static void
what_was_withheld_is_due_when_its_second_is_over(void **state)
{
	uint32_t withheld;
	const struct peer *peer;

	(void)state;
	assert_int_equal(limits_deadline(&limits), INT64_MAX);
	assert_true(reports(four(1), 5 * SECOND, 0));
	assert_int_equal(limits_deadline(&limits), INT64_MAX);
	assert_false(reports(four(1), 5 * SECOND, 0));
	assert_int_equal(limits_deadline(&limits), 6 * SECOND);
	assert_null(limits_due(&limits, 6 * SECOND - 1, &withheld));
	peer = limits_due(&limits, 6 * SECOND, &withheld);
	assert_non_null(peer);
	assert_memory_equal(peer->address, four(1).bytes, SHAI_ADDRESS_SIZE);
	assert_int_equal(withheld, 1);
	assert_null(limits_due(&limits, 60 * SECOND, &withheld));
	assert_false(reports(four(1), 6 * SECOND, 0)); /* that was one, too */
}

/* Whatever addresses a flood comes from, the number of events has a limit, and none is lost. */
static void
a_flood_of_addresses_is_counted(void **state)
{
	uint32_t sent = 0, counted = 0, withheld;

	(void)state;
	for (uint32_t i = 0; i < 3 * LIMITS_PEERS; i++)
		for (int again = 0; again < 2; again++)
			if (limits_report(&limits, four(i).bytes, SECOND, &withheld))
				sent++;
			else
				counted++;
	assert_int_equal(sent, LIMITS_PEERS + 1);
	while (limits_due(&limits, 2 * SECOND, &withheld) != NULL)
		counted -= withheld;
	assert_int_equal(counted, 0);
}

/* A flood of addresses neither keeps others away nor makes connections forgotten. */
static void
connections_have_room_in_a_flood(void **state)
{
	uint32_t withheld, total = 0;

	(void)state;
	assert_non_null(enter(four(7), 1));
	for (uint32_t i = 100; i < 100 + 2 * LIMITS_PEERS; i++)
		for (int again = 0; again < 2; again++)
			(void)limits_report(&limits, four(i).bytes, SECOND, &withheld);
	for (uint32_t i = 0; i < SHAI_SLOTS_MAX - 1; i++)
		assert_non_null(enter(six((uint8_t)i, 0), 1));
	assert_null(enter(four(7), 1));
	while (limits_due(&limits, 3 * SECOND, &withheld) != NULL)
		total += withheld;
	/* Each address twice, less the events that were sent: one each with an entry, and one. */
	assert_int_equal(total, 4 * LIMITS_PEERS - (LIMITS_PEERS - 1) - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(connections_of_an_address_are_limited, clear),
	    cmocka_unit_test_setup(a_network_of_version_6_is_one_peer, clear),
	    cmocka_unit_test_setup(one_event_a_second_is_sent, clear),
	    cmocka_unit_test_setup(what_was_withheld_is_due_when_its_second_is_over, clear),
	    cmocka_unit_test_setup(a_flood_of_addresses_is_counted, clear),
	    cmocka_unit_test_setup(connections_have_room_in_a_flood, clear),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}

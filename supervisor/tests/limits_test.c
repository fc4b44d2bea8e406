/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Events about peers.
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

static bool
reports(struct address address, int64_t now, uint32_t expected)
{
	uint32_t withheld = UINT32_MAX;

	return limits_report(&limits, address.bytes, now, &withheld) && withheld == expected;
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
a_network_of_version_6_is_one_peer(void **state)
{
	(void)state;
	assert_true(reports(six(1, 1), 5 * SECOND, 0));
	assert_false(reports(six(1, 2), 5 * SECOND, 0));
	assert_true(reports(six(2, 1), 5 * SECOND, 0));
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(a_network_of_version_6_is_one_peer, clear),
	    cmocka_unit_test_setup(one_event_a_second_is_sent, clear),
	    cmocka_unit_test_setup(what_was_withheld_is_due_when_its_second_is_over, clear),
	    cmocka_unit_test_setup(a_flood_of_addresses_is_counted, clear),
	};

	return cmocka_run_group_tests_name("limits", tests, NULL, NULL);
}

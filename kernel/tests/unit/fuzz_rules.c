/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Arguments of any bits: what the rules let through must be as the code behind
 * them takes for granted.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"

#define PAGE 4096u
#define MINIMUM 0x1000u
#define MAXIMUM 0x800000000000u

static void
must(bool condition)
{
	if (!condition)
		abort();
}

static void
check_range(uint64_t start, uint64_t length)
{
	must(length != 0 && start + length > start);
	must(start >= MINIMUM && start + length <= MAXIMUM);
	must(start % PAGE == 0 && (start + length) % PAGE == 0);
}

static void
check_steps(const uint8_t *data, size_t size)
{
	enum lwc_state state = LWC_STATE_CREATED;

	for (size_t i = 0; i < size; i++) {
		enum lwc_state before = state;
		int error = rules_step(&state, (enum lwc_step)(data[i] % 4));

		must(error == 0 || state == before);
		must(before != LWC_STATE_DEAD || error == ESRCH);
		must(state != LWC_STATE_DEAD || before != LWC_STATE_CURRENT);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	union {
		struct lwc_spec spec;
		struct lwc_range range;
		struct lwc_descriptors descriptors;
		struct lwc_overlay overlay;
		struct lwc_message message;
		struct lwc_restriction restriction;
		struct shai_conduit conduit;
	} any;

	memset(&any, 0, sizeof(any));
	memcpy(&any, data, size < sizeof(any) ? size : sizeof(any));
	if (rules_check_range(&any.range, MINIMUM, MAXIMUM, PAGE) == 0) {
		check_range(any.range.start, any.range.length);
		must(any.range.mode <= LWC_OMIT);
	}
	if (rules_check_overlay(&any.overlay, MINIMUM, MAXIMUM, PAGE) == 0) {
		check_range(any.overlay.start, any.overlay.length);
		check_range(any.overlay.here, any.overlay.length);
	}
	if (rules_check_descriptors(&any.descriptors) == 0)
		must(any.descriptors.first >= 0 &&
		     any.descriptors.last >= any.descriptors.first &&
		     any.descriptors.mode <= LWC_OMIT);
	if (rules_check_message(&any.message) == 0)
		must(any.message.error >= 0);
	if (rules_check_spec(&any.spec) == 0)
		must(any.spec.range_count <= LWC_RANGES_MAX &&
		     any.spec.descriptor_count <= LWC_DESCRIPTORS_MAX);
	if (rules_check_conduit(&any.conduit) == 0)
		must(any.conduit.rights >= 1 && any.conduit.rights <= 3);
	check_steps(data, size);
	return 0;
}

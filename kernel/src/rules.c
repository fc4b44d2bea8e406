/* SPDX-License-Identifier: BSD-2-Clause */
#include "rules.h"

int
rules_step(enum lwc_state *state, enum lwc_step step)
{
	bool current = *state == LWC_STATE_CURRENT;

	if (*state == LWC_STATE_DEAD)
		return (ESRCH);
	if (step == LWC_STEP_ENTER || step == LWC_STEP_DISCARD) {
		if (current)
			return (EBUSY);
		*state =
		    step == LWC_STEP_ENTER ? LWC_STATE_CURRENT : LWC_STATE_DEAD;
		return (0);
	}
	if (!current)
		return (ESRCH);
	*state =
	    step == LWC_STEP_TRAP ? LWC_STATE_TRAPPED : LWC_STATE_SUSPENDED;
	return (0);
}

bool
rules_is_source(enum lwc_state state)
{
	return (state == LWC_STATE_CREATED || state == LWC_STATE_SUSPENDED);
}

static bool
is_mode(uint32_t mode)
{
	return (mode == LWC_COPY || mode == LWC_SHARE || mode == LWC_OMIT);
}

int
rules_check_spec(const struct lwc_spec *spec)
{
	if (spec->version != LWC_VERSION)
		return (EPROTONOSUPPORT);
	if ((spec->flags & ~(LWC_MONITORED | LWC_CAPABILITY_MODE)) != 0)
		return (EINVAL);
	if (spec->source < LWC_SELF)
		return (EBADF);
	if ((spec->flags & LWC_MONITORED) != 0 && spec->monitor < LWC_SELF)
		return (EBADF);
	if (spec->range_count > LWC_RANGES_MAX ||
	    spec->descriptor_count > LWC_DESCRIPTORS_MAX)
		return (E2BIG);
	return (0);
}

/*
 * Checks that start + length does not wrap, that both are aligned, and that the
 * range lies within the limits.
 */
static bool
is_range(uint64_t start, uint64_t length, uint64_t minimum, uint64_t maximum,
    uint64_t page)
{
	if (length == 0 || start % page != 0 || length % page != 0)
		return (false);
	return (
	    start >= minimum && start < maximum && length <= maximum - start);
}

int
rules_check_range(const struct lwc_range *range, uint64_t minimum,
    uint64_t maximum, uint64_t page)
{
	if (!is_mode(range->mode) || range->reserved != 0)
		return (EINVAL);
	if (!is_range(range->start, range->length, minimum, maximum, page))
		return (EINVAL);
	return (0);
}

int
rules_check_descriptors(const struct lwc_descriptors *descriptors)
{
	if (!is_mode(descriptors->mode) || descriptors->reserved != 0)
		return (EINVAL);
	if (descriptors->first < 0 || descriptors->last < descriptors->first)
		return (EINVAL);
	return (0);
}

int
rules_check_message(const struct lwc_message *message)
{
	if ((message->flags & ~LWC_CALL) != 0)
		return (EINVAL);
	/* Negative values are internal to the kernel (restart, keep the
	 * registers). */
	if (message->error < 0 || message->error > 0xffff)
		return (EINVAL);
	return (0);
}

int
rules_check_restriction(
    int descriptor, const struct lwc_restriction *restriction)
{
	if ((restriction->rights & ~LWC_RIGHTS_ALL) != 0)
		return (EINVAL);
	if ((restriction->flags & ~LWC_CAPABILITY_MODE) != 0)
		return (EINVAL);
	if (restriction->flags != 0 && descriptor != LWC_SELF)
		return (EINVAL);
	return (0);
}

int
rules_check_overlay(const struct lwc_overlay *overlay, uint64_t minimum,
    uint64_t maximum, uint64_t page)
{
	if ((overlay->flags & ~LWC_OVERLAY_WRITE) != 0 ||
	    overlay->reserved != 0)
		return (EINVAL);
	if (!is_range(
		overlay->start, overlay->length, minimum, maximum, page) ||
	    !is_range(overlay->here, overlay->length, minimum, maximum, page))
		return (EINVAL);
	return (0);
}

int
rules_check_conduit(const struct shai_conduit *conduit)
{
	const uint32_t known = SHAI_CONDUIT_READ | SHAI_CONDUIT_WRITE;

	if (conduit->rights == 0 || (conduit->rights & ~known) != 0 ||
	    conduit->reserved != 0)
		return (EINVAL);
	return (0);
}

bool
rules_may_grant(bool monitored, bool confined, bool monitor_of_target)
{
	return (!monitored && (!confined || monitor_of_target));
}

bool
rules_same_release(int version, int other)
{
	return (version / 1000 == other / 1000);
}

bool
rules_call_in(const uint64_t words[LWC_CALL_WORDS], int number)
{
	if (number < 0 || number >= LWC_CALLS_MAX)
		return (true);
	return ((words[number / 64] >> (number % 64) & 1) != 0);
}

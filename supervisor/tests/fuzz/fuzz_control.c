/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Control records under libFuzzer. An input begins with the number of descriptors, whether
 * the header is made right, and how many zeros follow. What is accepted is applied to the
 * tables.
 */
#include "control_records.h"
#include "demand.h"
#include "keys.h"
#include "regions.h"
#include "sets.h"

static void
apply_set(const struct control *control)
{
	struct sets sets = {NULL};
	struct set *set;

	for (uint32_t i = 0; i < control->set->class_count; i++)
		demand(control->classes[i] > (i == 0 ? 0 : control->classes[i - 1]));
	demand(sets_apply(&sets, control->set, control->classes) == 0);
	set = sets_hold(&sets, control->set->principal, control->set->region, 1);
	demand((set == NULL) == (control->set->expires == 1));
	demand(set == NULL || !set_has_class(set, 0));
	set_release(set);
	sets_free(&sets);
}

static void
apply_regions(const struct control *control)
{
	struct regions regions = {.begun = true};

	demand(regions_apply(&regions, control->regions, control->region) == 0);
	for (uint32_t i = 0; i < control->regions->count; i++)
		demand(strlen(regions_find(&regions, control->region[i].address)) < SHAI_NAME_MAX);
	regions_free(&regions);
}

static void
apply_key(const struct control *control)
{
	struct keys keys = {NULL};

	demand(keys_apply(&keys, control->key) == 0);
	demand((keys_find(&keys, control->key->principal) != NULL) == control->key->present);
	keys_free(&keys);
}

static void
check_slot(const struct shai_control_slot *slot, size_t descriptors)
{
	demand(slot->slot < SHAI_SLOTS_MAX && slot->count == descriptors);
	for (uint32_t i = 0; i < slot->count; i++)
		demand(slot->end[i].number >= SHAI_FD_PIPE &&
		       slot->end[i].number < SHAI_FD_RESERVED_END);
}

static void
use(const struct control *control, size_t descriptors)
{
	if (control->type == SHAI_CONTROL_SET)
		apply_set(control);
	else if (control->type == SHAI_CONTROL_REGIONS)
		apply_regions(control);
	else if (control->type == SHAI_CONTROL_KEY)
		apply_key(control);
	else if (control->type == SHAI_CONTROL_SLOT)
		check_slot(control->slot, descriptors);
	else if (control->type == SHAI_CONTROL_RELAY)
		demand(control->relayed.length >= sizeof(struct shai_header));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct control control;
	struct bytes message;
	void *copy;

	if (size < 4)
		return 0;
	message.descriptors = data[0];
	message.length = size - 4 + data[2] + 256u * (data[3] % 4);
	copy = message_copy(data + 4, size - 4, message.length - (size - 4));
	message.start = copy;
	if (message.length >= sizeof(struct shai_control_header) && data[1] != 0) {
		struct shai_control_header *header = copy;

		header->type = data[1];
		header->version = SHAI_CONTROL_VERSION;
		header->size = (uint32_t)message.length;
	}
	if (control_decode(message, &control) == NULL)
		use(&control, message.descriptors);
	free(copy);
	return 0;
}

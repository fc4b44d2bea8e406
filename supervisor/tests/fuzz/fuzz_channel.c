/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Records of descriptor channels under libFuzzer.
 */
#include "channels.h"
#include "demand.h"
#include "shai_supervision.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shai_transfer *copy = message_copy(data, size, 0);

	if (channel_check((struct bytes){copy, size, 0}) == NULL) {
		demand(size >= 8 && size <= sizeof(struct shai_transfer) && size % 4 == 0);
		demand(copy->reserved == 0);
	}
	free(copy);
	return 0;
}

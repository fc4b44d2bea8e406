/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probe_worker.h"

void
probe_choices(char *rest)
{
	static struct shai_offer offer; /* not on the stack: that of a session is small */
	char line[LINE - 64] = "";

	if (shai_choices(&session, (uint32_t)strtoul(rest, NULL, 10), &offer) == -1) {
		answer_error(shai_reason());
		return;
	}
	for (uint32_t i = 0; i < offer.count; i++)
		snprintf(
		    line + strlen(line), sizeof(line) - strlen(line), " | %s", offer.choice[i]);
	answer("offered %s %s | %s%s", offer.conduit, offer.nonce, offer.policy, line);
}

void
probe_choose(char *rest)
{
	uint32_t number = (uint32_t)strtoul(rest, &rest, 10);
	const char *hex = strtok(rest, " "), *policy = strtok(NULL, "");
	uint8_t signature[SHAI_SIGNATURE_SIZE];
	char reason[SHAI_REASON_MAX];

	probe_signature(hex, signature);
	if (shai_choose(&session, number, policy == NULL ? "" : policy, signature, reason) == -1)
		answer_error(shai_reason());
	else
		answer("chosen");
}

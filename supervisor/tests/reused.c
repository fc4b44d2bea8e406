/* SPDX-License-Identifier: BSD-2-Clause */
#include "reused.h"

#include <unistd.h>

void
reused_start(struct harness *h, uint32_t sessions_per_worker)
{
	struct shai_control_settings settings = harness_settings();

	settings.slots = 1;
	settings.sessions_per_worker = sessions_per_worker;
	harness_start(h, SEALS, &settings);
	harness_seal(h);
}

pid_t
reused_begin(struct harness *h, struct client *client, const char *principal)
{
	*client = client_begin(h);
	if (principal != NULL)
		(void)client_bind(client, principal);
	return harness_event(h, SHAI_EVENT_ACCEPTED)->worker;
}

pid_t
reused_first(struct harness *h, const char *principal)
{
	struct client client;
	pid_t worker = reused_begin(h, &client, principal);

	client_leave(&client);
	EXPECT(harness_compare(h, true) == worker);
	EXPECT(harness_event(h, SHAI_EVENT_ENDED)->worker == worker);
	return worker;
}

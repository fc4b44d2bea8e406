/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The arguments of the system calls in the kernel's layout: one register each.
 * Only 64-bit processes get here.
 */
#ifndef SHAI_ARGUMENTS_H
#define SHAI_ARGUMENTS_H

#include <sys/types.h>

#include "lwc.h"

/* An int in the size of a register. Little-endian, like every supported
 * machine. */
#define INT_ARGUMENT(name)                                                     \
	int name;                                                              \
	int name##_padding

struct lwc_create_args {
	const struct lwc_spec *spec;
	struct lwc_event *event;
};

struct lwc_switch_args {
	INT_ARGUMENT(context);
	const struct lwc_message *message;
	struct lwc_event *event;
};

struct lwc_restrict_args {
	INT_ARGUMENT(context);
	const struct lwc_restriction *restriction;
};

struct lwc_overlay_args {
	INT_ARGUMENT(context);
	const struct lwc_overlay *overlay;
};

struct lwc_syscall_args {
	INT_ARGUMENT(context);
	INT_ARGUMENT(resources);
	INT_ARGUMENT(number);
	const uint64_t *arguments;
};

struct shai_grant_args {
	INT_ARGUMENT(context);
	const struct shai_conduit *conduits;
	INT_ARGUMENT(count);
};

struct shai_channel_args {
	int *ends;
};

struct shai_send_args {
	INT_ARGUMENT(channel);
	const int *descriptors;
	INT_ARGUMENT(count);
};

struct shai_receive_args {
	INT_ARGUMENT(channel);
	int *descriptors;
	INT_ARGUMENT(count);
};

#endif

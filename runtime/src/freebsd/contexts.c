/* SPDX-License-Identifier: BSD-2-Clause */
#include "contexts.h"

#include <stddef.h>
#include <sys/sysctl.h>
#include <sys/types.h>
#include <unistd.h>

static int create_number, switch_number, on_behalf_number;

static bool
read_variable(const char *name, int *value)
{
	size_t size = sizeof(*value);

	return sysctlbyname(name, value, &size, NULL, 0) == 0 && size == sizeof(*value);
}

bool
contexts_find(void)
{
	int version;

	return read_variable("shai.version", &version) && version == LWC_VERSION &&
	       read_variable("shai.syscall.lwc_create", &create_number) &&
	       read_variable("shai.syscall.lwc_switch", &switch_number) &&
	       read_variable("shai.syscall.lwc_syscall", &on_behalf_number);
}

int
lwc_create(const struct lwc_spec *spec, struct lwc_event *event)
{
	return syscall(create_number, spec, event);
}

int
lwc_switch(int context, const struct lwc_message *message, struct lwc_event *event)
{
	return syscall(switch_number, context, message, event);
}

long
lwc_on_behalf(int resources, int number, const uint64_t arguments[LWC_ARGUMENTS])
{
	return syscall(on_behalf_number, LWC_CALLER, resources, number, arguments);
}

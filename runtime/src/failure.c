/* SPDX-License-Identifier: BSD-2-Clause */
#include "failure.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "shai.h"

static _Thread_local char last_reason[512];

void
shai_record_failure(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(last_reason, sizeof(last_reason), format, arguments);
	va_end(arguments);
	errno = error;
}

const char *
shai_reason(void)
{
	return last_reason;
}

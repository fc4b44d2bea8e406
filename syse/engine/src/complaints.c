/* SPDX-License-Identifier: BSD-2-Clause */
#include "complaints.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#define IN_FULL 10
#define THEN_EVERY 1000

void
complain(const char *format, ...)
{
	static atomic_ulong count;
	unsigned long number = atomic_fetch_add(&count, 1) + 1;
	char text[512];
	va_list arguments;

	if (number > IN_FULL && number % THEN_EVERY != 0)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	fprintf(stderr, "syse-engine: %s%s\n", text,
	    number > IN_FULL ? " (one of many complaints)" : "");
}

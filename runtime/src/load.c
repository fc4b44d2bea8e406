/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The steps when the library is loaded, before the program's first line.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend.h"
#include "exchange.h"
#include "shai.h"

#define EXIT_UNREGISTERED 71 /* EX_OSERR: not an error of the program */

__attribute__((noreturn)) static void
give_up(const char *what, const char *why)
{
	(void)fprintf(stderr, "libshai: %s: %s; the task does not start\n", what, why);
	_exit(EXIT_UNREGISTERED);
}

__attribute__((constructor)) static void
load(void)
{
	const char *instance = getenv(SHAI_ENVIRONMENT_INSTANCE);
	int prepared = shai_backend_prepare();

	if (instance == NULL || !shai_exchange_present())
		return;
	if (prepared != 0)
		give_up("preparation for a monitor", strerror(errno));
	if (shai_register(instance, 0) != 0)
		give_up(instance, shai_reason());
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Names of the wire protocol's numbers, as users and manifests write them.
 */
#ifndef SYSE_NAMES_H
#define SYSE_NAMES_H

#include "shai.h"

static inline const char *
name_of_mode(enum shai_mode mode)
{
	switch (mode) {
	case SHAI_MODE_BASELINE:
		return "baseline";
	case SHAI_MODE_DYNAMIC:
		return "dynamic";
	case SHAI_MODE_SHAI:
		return "shai";
	case SHAI_MODE_AUDIT:
		return "audit";
	case SHAI_MODE_DYNAMIC_LAZY:
		return "dynamic-lazy";
	}
	return "unknown";
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SHAI_REGISTRATION_H
#define SHAI_REGISTRATION_H

#include "paths.h"

/* Returns the table in force; never NULL, immutable, never freed. */
const struct shai_table *shai_table_current(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Transfers that arrive among the monitor's answers, because both come on descriptor 3.
 */
#ifndef SHAI_TRANSFERS_H
#define SHAI_TRANSFERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "records.h"

/*
 * Keeps a SHAI_TRANSFER until it is taken. Of more than SHAI_TRANSFERS_KEPT the oldest is
 * dropped. Returns false if the record is not a SHAI_TRANSFER.
 */
#define SHAI_TRANSFERS_KEPT 8
bool shai_transfers_keep(struct shai_bytes record);

/*
 * Takes the oldest transfer, as it came on the session's channel. Returns its length, or 0
 * if none is kept. out has room for a struct shai_transfer.
 */
size_t shai_transfers_take(void *out);

#endif

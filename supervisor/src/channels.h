/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef SUPERVISOR_CHANNELS_H
#define SUPERVISOR_CHANNELS_H

#include "bytes.h"

/*
 * Checks a record of a descriptor channel (struct shai_transfer of its own length), which
 * another task wrote. Returns NULL if it may be passed on to the worker of the channel's
 * slot, or a constant part of a sentence that names what is wrong. Pure.
 */
const char *channel_check(struct bytes record);

#endif

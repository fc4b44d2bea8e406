/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The calls of probe_raising that differ between systems. They return -1 with errno.
 */
#ifndef SHAI_TESTS_RAISING_CALLS_H
#define SHAI_TESTS_RAISING_CALLS_H

#include <stddef.h>
#include <sys/types.h>

#ifdef __GLIBC__
#include <string.h>
#define error_name strerrorname_np
#else
#include "error_name.h"
#endif

/* Opens a path beneath the view to read it, as libshai does where the monitor decides. */
int open_in_view(const char *path);

/* Opens a path beneath a directory. What the kernel refuses is not asked for. */
int open_natively(int directory, const char *path, int flags);

/*
 * Registers with SHAI_REGISTER_CLOSE by a request of its own, and says of each descriptor that
 * it is in its place. In truth it places none, or also opens something else ("more"), or sends
 * something to itself before ("early"). Returns 0 if the monitor has answered on its socket.
 */
int cheat(const char *instance, const char *how);

/* Sends a descriptor over a socket pair, which stays; receives it. */
int pass_descriptor(int descriptor);
int take_descriptor(void);

/* Has the kernel write a line; waits until it has. */
int write_later(int descriptor);
int finish_writing(void);

/* Starts a child that stays; ends it, and returns when it has ended. */
int start_child(void);
int end_child(void);

/* Makes a context of shai.ko. Returns a descriptor. */
int make_context(void);

/* Puts a page into a pipe without copying it. */
long give_page(int pipe, void *page, size_t size);

#endif

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Detached mounts of the classes' directories beneath the view. A descriptor of one is a
 * capability: ".." ends at the directory, and nothing can be changed beneath it. The
 * mounts that were not used for the longest time are given up when there are too many.
 */
#ifndef SUPERVISOR_MOUNTS_H
#define SUPERVISOR_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mount;
struct mounts;

/*
 * Gives this process a mount namespace of its own, in which mounts_new may mount something:
 * what the machine mounts and unmounts reaches it, and what it mounts reaches nobody. Without
 * the right to it nothing changes, and there will be no mounts of classes. Returns NULL, or
 * what went wrong, with errno.
 */
const char *mounts_separate(void);

/*
 * Returns a table of at most max mounts (at least 1) beneath the directory view, whose
 * descriptor must outlive it; or NULL if there is no memory. If the view is a detached mount,
 * it is mounted in the namespace of mounts_separate: before Linux 6.15 a detached mount cannot
 * be cloned (open_tree(2)).
 */
struct mounts *mounts_new(int view, size_t max);
void mounts_free(struct mounts *mounts); /* may be NULL; no mount may be held */

/*
 * Reports whether the kernel makes such mounts, and this process may: tried once with the
 * view itself. Without it, sessions get no directories.
 */
bool mounts_available(const struct mounts *mounts);

/*
 * Holds the mount of each class, and puts it into held. More than max may be held at a time.
 * Returns 0; or -1 with errno, and holds none.
 */
int mounts_hold(struct mounts *mounts, const uint32_t *classes, size_t count, struct mount *held[]);
void mounts_release(struct mounts *mounts, struct mount *const held[], size_t count);

/* The descriptor of a mount's directory (O_PATH, close-on-exec). It belongs to the mount. */
int mount_descriptor(const struct mount *mount);

#endif

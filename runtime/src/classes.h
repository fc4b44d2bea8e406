/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The class table: which class each conduit is in, kept by the monitor in a file
 * that this process has mapped.
 */
#ifndef SHAI_CLASSES_H
#define SHAI_CLASSES_H

#include <stdint.h>

/*
 * The class of a conduit now, or 0 when it has none, is beyond the table, or
 * there is no table. Maps the table at first use, and anew when the conduit is
 * beyond it and the file has grown.
 */
uint32_t shai_class_of(uint32_t conduit);

/* Maps the table ahead of its first use, so that workers inherit the mapping. */
void shai_classes_map(void);

/* Drops the mapping; the next use maps what is then at SHAI_FD_CLASSES. */
void shai_classes_unmap(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The class table: the class of each conduit. The monitor keeps it in a file, which
 * this process maps.
 */
#ifndef SHAI_CLASSES_H
#define SHAI_CLASSES_H

#include <stdint.h>

/*
 * Returns the class of a conduit now, or 0 if it has none, is beyond the table, or
 * there is no table. Maps the table at first use, and again if the conduit is beyond
 * the mapping and the file has grown.
 */
uint32_t shai_class_of(uint32_t conduit);

/* Maps the table before its first use, so that workers inherit the mapping. */
void shai_classes_map(void);

/* Drops the mapping. The next use maps the file that is then at SHAI_FD_CLASSES. */
void shai_classes_unmap(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The layout of the view and membership in a capability set. Pure.
 */
#ifndef SHAI_VIEW_H
#define SHAI_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Size of three decimal uint32 with two slashes and a NUL. */
#define SHAI_VIEW_NAME_SIZE 33

/* Conduits of one class are spread over directories of 1 << SHAI_VIEW_BUCKET_BITS. */
#define SHAI_VIEW_BUCKET_BITS 10

/* Writes "class/bucket/id", the conduit's name beneath the view. */
void shai_view_name(uint32_t class, uint32_t conduit, char out[SHAI_VIEW_NAME_SIZE]);

/* Size of a decimal uint32 with a NUL. */
#define SHAI_VIEW_CLASS_SIZE 11

/* Writes the name of a class's directory. */
void shai_view_class_name(uint32_t class, char out[SHAI_VIEW_CLASS_SIZE]);

/* Writes "bucket/id", the conduit's name beneath its class's directory. */
void shai_view_name_in_class(uint32_t conduit, char out[SHAI_VIEW_NAME_SIZE]);

/*
 * Finds the class directory that a path beneath the view begins with: "7/0/12" is in
 * 7. *rest becomes the rest of the path, "." if there is none. Returns false if the
 * path begins with no class.
 */
bool shai_view_class(const char *path, uint32_t *class, const char **rest);

/* Returns the position of class among count strictly ascending classes, or count. */
size_t shai_class_position(const uint32_t *classes, size_t count, uint32_t class);

#endif

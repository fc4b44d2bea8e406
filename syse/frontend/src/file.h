/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Files that the zygote reads once.
 */
#ifndef SYSE_FILE_H
#define SYSE_FILE_H

#include <stddef.h>

#define FILE_SIZE_MAX (64 * 1024) /* the page fits into an answer */

/*
 * Reads a whole file of UTF-8 text, NUL-terminated, with room for more bytes after it; the caller
 * frees it. *size is without the room and the NUL. Returns NULL with the reason: the file, and what
 * is wrong with it.
 */
char *file_read(const char *path, size_t room, size_t *size, char *reason, size_t reason_size);

/* Returns how many lines a text has at most. */
size_t file_lines(const char *text);

#endif

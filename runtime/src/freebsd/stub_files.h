/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a session has of the zygote's open files: all workers have the same, with the same
 * offset and flags, which would tell one session of another. So each session opens them
 * anew.
 */
#ifndef SHAI_STUB_FILES_H
#define SHAI_STUB_FILES_H

#include <stddef.h>

#define STUB_FILES_MAX 64

struct stub_files {
	size_t count;
	int number[STUB_FILES_MAX];
};

/* Finds the files and directories of this process. Returns 0, or -1 with errno. */
int stub_find_files(struct stub_files *files);

/* Opens them anew, at their numbers and with their rights. Returns 0, or -1 with errno. */
int stub_reopen_files(const struct stub_files *files);

#endif

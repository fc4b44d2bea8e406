/* SPDX-License-Identifier: BSD-2-Clause */
#include "stub_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The monitor refuses a worker that has more than a few beyond the reserved numbers. */
#define NUMBERS 1024

/* Of what it may not examine a process has neither offset nor flags. */
static bool
is_file(int number)
{
	struct stat status;

	return fstat(number, &status) == 0 && (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
}

int
stub_find_files(struct stub_files *files)
{
	files->count = 0;
	for (int number = 0; number < NUMBERS; number++) {
		if (!is_file(number))
			continue;
		if (files->count == STUB_FILES_MAX) {
			errno = EMFILE;
			return -1;
		}
		files->number[files->count++] = number;
	}
	return 0;
}

/* The kernel gives what is opened in capability mode the rights of the old descriptor. */
static int
reopen(int number)
{
	int fresh = (int)syscall(SYS_openat, number, "", O_RDONLY | O_EMPTY_PATH | O_CLOEXEC);
	int error;

	if (fresh < 0)
		return -1;
	if (dup2(fresh, number) < 0) {
		error = errno;
		(void)close(fresh);
		errno = error;
		return -1;
	}
	return close(fresh);
}

int
stub_reopen_files(const struct stub_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		if (reopen(files->number[i]) != 0)
			return -1;
	return 0;
}

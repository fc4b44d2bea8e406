/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Files in memory that tasks read.
 */
#ifndef SUPERVISOR_MEMORY_FILE_H
#define SUPERVISOR_MEMORY_FILE_H

/*
 * Opens a file in memory again, for reading, without its time of access, and closes file in any
 * case. Returns the new descriptor, or -1 with errno. Seals alone are not enough for what
 * workers get: an attempt to write fails, but changes the file's times, which others see.
 */
int memory_file_to_read(int file);

#endif

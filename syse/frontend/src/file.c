/* SPDX-License-Identifier: BSD-2-Clause */
#include "file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

char *
file_read(const char *path, size_t room, size_t *size, char *reason, size_t reason_size)
{
	FILE *file = fopen(path, "re");
	char *data, *shrunk;

	if (file == NULL) {
		snprintf(reason, reason_size, "read %s: %s", path, strerror(errno));
		return NULL;
	}
	data = malloc(FILE_SIZE_MAX + room + 1);
	if (data == NULL) {
		snprintf(reason, reason_size, "read %s: out of memory", path);
		fclose(file);
		return NULL;
	}
	*size = fread(data, 1, FILE_SIZE_MAX + 1, file);
	if (ferror(file) || *size > FILE_SIZE_MAX || memchr(data, '\0', *size) ||
	    !utf8_valid(data, *size)) {
		snprintf(reason, reason_size, "read %s: it must be UTF-8 text of at most %d bytes",
		    path, FILE_SIZE_MAX);
		fclose(file);
		free(data);
		return NULL;
	}
	fclose(file);
	data[*size] = '\0';
	/* What is not used would be restored between sessions. */
	shrunk = realloc(data, *size + room + 1);
	return shrunk != NULL ? shrunk : data;
}

size_t
file_lines(const char *text)
{
	size_t lines = 1;

	for (; *text != '\0'; text++)
		lines += *text == '\n';
	return lines;
}

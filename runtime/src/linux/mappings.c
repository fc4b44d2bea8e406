/* SPDX-License-Identifier: BSD-2-Clause */
#include "mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096u

/* Reads a hexadecimal number and the character after it. Returns NULL if it is malformed. */
static const char *
read_address(const char *text, char after, uint64_t *out)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = text, *digit;

	for (*out = 0; *at != '\0' && (digit = strchr(digits, *at)) != NULL; at++) {
		if (*out >> 60 != 0)
			return NULL;
		*out = *out << 4 | (uint64_t)(digit - digits);
	}
	return at != text && *at == after ? at + 1 : NULL;
}

/* Reads a line: START-END PERMISSIONS OFFSET DEVICE INODE [NAME]. */
static bool
read_line(const char *line, struct shai_mapping *mapping)
{
	const char *permissions = read_address(line, '-', &mapping->start);
	size_t length = strlen(line);

	if (permissions != NULL)
		permissions = read_address(permissions, ' ', &mapping->end);
	if (permissions == NULL || strlen(permissions) < 4 || mapping->start >= mapping->end ||
	    mapping->start % PAGE != 0 || mapping->end % PAGE != 0)
		return false;
	mapping->writable = permissions[1] == 'w';
	mapping->shared = permissions[3] == 's';
	mapping->stack = length > 8 && strcmp(line + length - 8, " [stack]") == 0;
	return permissions[3] == 'p' || permissions[3] == 's';
}

/*
 * Visits the whole lines of a text. Returns how many bytes these are, or -1 if one is
 * malformed; sets *more to whether the visitor wants to go on.
 */
static ssize_t
visit_lines(char *text, size_t length, shai_mapping_visitor *visit, void *context, bool *more)
{
	size_t done = 0;
	char *end;

	while (*more && (end = memchr(text + done, '\n', length - done)) != NULL) {
		struct shai_mapping mapping;

		*end = '\0';
		if (!read_line(text + done, &mapping))
			return -1;
		*more = visit(context, &mapping);
		done = (size_t)(end - text) + 1;
	}
	return (ssize_t)done;
}

int
shai_mappings_read(int list, shai_mapping_visitor *visit, void *context)
{
	char text[SHAI_MAPPING_LINE_MAX];
	size_t kept = 0;
	bool more = true;

	while (more) {
		ssize_t length = read(list, text + kept, sizeof(text) - kept), done;

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0)
			return -1;
		if (length == 0 && kept == 0)
			return 0;
		/* Also of a line without an end, or without room for it. */
		done = length == 0
			   ? -1
			   : visit_lines(text, kept + (size_t)length, visit, context, &more);
		if (done < 0) {
			errno = EPROTO;
			return -1;
		}
		kept += (size_t)length - (size_t)done;
		memmove(text, text + done, kept);
	}
	return 0;
}

/* Makes the call itself, since the preload layer interposes open(3). */
int
shai_mappings_visit(shai_mapping_visitor *visit, void *context)
{
	int list = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
	int result;

	if (list < 0)
		return -1;
	result = shai_mappings_read(list, visit, context);
	(void)close(list);
	return result;
}

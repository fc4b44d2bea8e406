/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The directories of a session's classes, which stand for those of the view.
 */
#include "directories.h"

#include <stddef.h>
#include <unistd.h>

#include "view.h"

static const struct shai_session *_Atomic holder;

void
shai_directories_take(
    struct shai_session *session, struct shai_message *message, size_t first, uint32_t count)
{
	while (session->directory_count > 0)
		(void)close(session->directories[--session->directory_count]);
	for (uint32_t i = 0; i < count; i++)
		session->directories[i] = shai_message_take(message, first + i);
	session->directory_count = count;
}

int
shai_directory_of_class(const struct shai_session *session, uint32_t class)
{
	size_t position = shai_class_position(session->classes, session->class_count, class);

	return position < session->directory_count ? session->directories[position] : -1;
}

void
shai_directories_of(const struct shai_session *session)
{
	holder = session;
}

int
shai_directory_of(int number, const char **rest)
{
	const struct shai_session *session = holder;
	const char *name;
	uint32_t class;
	int directory;

	if (number != SHAI_FD_CAPABILITY || session == NULL ||
	    !shai_view_class(*rest, &class, &name))
		return number;
	directory = shai_directory_of_class(session, class);
	if (directory < 0)
		return number;
	*rest = name[0] == '\0' ? "." : name; /* of a path with a slash at its end */
	return directory;
}

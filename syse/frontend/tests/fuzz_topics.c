/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whatever a file of topics or advertisements contains, it is loaded or refused; and whatever a
 * history or a tuple of topics contains, it has some topics and gets an advertisement.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "advertisements.h"
#include "topics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
use_topics(const struct topics *topics, const char *text, size_t size)
{
	struct topic_counts counts = {0};
	size_t chosen[TOPICS_CHOSEN_MAX], found;

	topics_count(topics, &counts, text, size);
	found = topics_choose(topics, &counts, chosen);
	for (size_t i = 0; i < found; i++)
		if (chosen[i] >= topics->count || counts.count[chosen[i]] == 0)
			abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct advertisements advertisements;
	struct topics topics;
	char path[64], reason[512];
	int file = memfd_create("file", MFD_CLOEXEC);

	if (file < 0 || write(file, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	if (topics_load(&topics, path, reason, sizeof reason)) {
		use_topics(&topics, text, size);
		topics_release(&topics);
	}
	if (advertisements_load(&advertisements, path, reason, sizeof reason)) {
		if (advertisements_choose(&advertisements, text, size, text, size) == NULL)
			abort();
		advertisements_release(&advertisements);
	}
	close(file);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The decoders and path logic under libFuzzer. The first byte chooses which; what
 * a decoder accepts must keep the promises its callers rely on.
 */
#include <stdlib.h>
#include <string.h>

#include "paths.h"
#include "records.h"

#define SEQUENCE 1

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
demand(int condition)
{
	if (!condition)
		abort();
}

static void
fuzz_registered(struct shai_bytes record)
{
	static struct shai_capability entries[SHAI_TABLE_MAX];
	struct shai_registered head;

	if (shai_decode_registered(record, SEQUENCE, &head, entries) != NULL)
		return;
	demand(head.capability_count <= SHAI_TABLE_MAX);
	for (uint32_t i = 0; i < head.capability_count; i++) {
		demand(entries[i].prefix[0] == '/' &&
		       strlen(entries[i].prefix) < sizeof(entries[i].prefix));
		demand(entries[i].number >= SHAI_FD_CAPABILITY &&
		       entries[i].number < SHAI_FD_RESERVED_END);
	}
}

static void
fuzz_bound(struct shai_bytes record)
{
	static uint32_t classes[SHAI_CLASSES_MAX];
	struct shai_bound head;

	if (shai_decode_bound(record, SEQUENCE, &head, classes) != NULL)
		return;
	demand(strlen(head.instance) < sizeof(head.instance));
	for (uint32_t i = 1; i < head.class_count; i++)
		demand(classes[i] > classes[i - 1]);
}

static void
fuzz_path(struct shai_bytes record)
{
	char path[512], normal[300], again[300];

	if (record.length >= sizeof(path))
		return;
	memcpy(path, record.start, record.length);
	path[record.length] = '\0';
	if (shai_path_normalise(path, normal, sizeof(normal)) != 0)
		return;
	demand(shai_path_normalise(normal, again, sizeof(again)) == 0);
	demand(strcmp(normal, again) == 0);
	demand(strstr(normal, "/../") == NULL && strstr(normal, "//") == NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct shai_connected connected;
	struct shai_opened opened;
	struct shai_transfer transfer;
	struct shai_bytes record;
	size_t count;

	if (size == 0)
		return 0;
	record = (struct shai_bytes){data + 1, size - 1};
	switch (data[0] % 6) {
	case 0:
		fuzz_registered(record);
		break;
	case 1:
		if (shai_decode_connected(record, &connected) == NULL)
			demand(strlen(connected.peer) < sizeof(connected.peer));
		break;
	case 2:
		fuzz_bound(record);
		break;
	case 3:
		(void)shai_decode_opened(record, SEQUENCE, 3, &opened);
		break;
	case 4:
		if (shai_decode_transfer(record, &transfer, &count) == NULL)
			demand(count <= SHAI_BATCH_MAX);
		break;
	default:
		fuzz_path(record);
	}
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The decoders and path logic under libFuzzer. The first byte chooses which; what
 * a decoder accepts must keep the promises its callers rely on.
 */
#include <stdlib.h>
#include <string.h>

#include "paths.h"
#include "requests.h"
#include "transfers.h"

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
fuzz_grown(struct shai_bytes record)
{
	static uint32_t classes[SHAI_CLASSES_MAX];
	struct shai_grown head;

	if (shai_decode_grown(record, &head, classes) != NULL)
		return;
	demand(head.directory_count <= head.class_count);
	for (uint32_t i = 1; i < head.class_count; i++)
		demand(classes[i] > classes[i - 1]);
}

static void
fuzz_connected(struct shai_bytes record)
{
	struct shai_connected connected;

	if (shai_decode_connected(record, &connected) != NULL)
		return;
	demand(strlen(connected.peer) < sizeof(connected.peer));
	demand(strlen(connected.service) < sizeof(connected.service));
	demand(strlen(connected.pipeline) < sizeof(connected.pipeline));
}

static void
fuzz_written(struct shai_bytes record)
{
	struct shai_written written;

	if (shai_decode_written(record, SEQUENCE, &written) != NULL)
		return;
	demand(written.status >= 0 && strlen(written.reason) < sizeof(written.reason));
}

static void
fuzz_choices(struct shai_bytes record)
{
	static char choice[SHAI_OFFERED_MAX][SHAI_POLICY_MAX];
	struct shai_offered offered;
	struct shai_chosen chosen;

	if (shai_decode_chosen(record, SEQUENCE, &chosen) == NULL)
		demand(chosen.status >= 0 && strlen(chosen.reason) < sizeof(chosen.reason));
	if (shai_decode_offered(record, SEQUENCE, &offered, choice) != NULL)
		return;
	demand(offered.count <= SHAI_OFFERED_MAX && (offered.status == 0 || offered.count == 0));
	demand(strlen(offered.conduit) < sizeof(offered.conduit));
	demand(strlen(offered.nonce) < sizeof(offered.nonce));
	demand(strlen(offered.policy) < sizeof(offered.policy));
	for (uint32_t i = 0; i < offered.count; i++)
		demand(strlen(choice[i]) < sizeof(choice[i]));
}

/* What is kept is what came after the header. */
static void
fuzz_kept(struct shai_bytes record)
{
	uint8_t out[sizeof(struct shai_transfer)];
	size_t length;

	if (!shai_transfers_keep(record))
		return;
	length = shai_transfers_take(out);
	demand(length + sizeof(struct shai_header) == record.length);
	demand(memcmp(out, record.start + sizeof(struct shai_header), length) == 0);
	demand(shai_transfers_take(out) == 0);
}

static void
fuzz_placed(struct shai_bytes record)
{
	struct shai_placed placed;

	if (shai_decode_placed(record, SEQUENCE, &placed) != NULL)
		return;
	demand(placed.count <= SHAI_PLACED_MAX);
	for (uint32_t i = 0; i < placed.count; i++)
		demand(
		    placed.number[i] >= SHAI_FD_MONITOR && placed.number[i] < SHAI_FD_RESERVED_END);
}

static void
fuzz_request(struct shai_bytes record)
{
	struct shai_request_path path;
	struct shai_stub_directory directory;
	struct shai_stub_write written;
	struct shai_answer answer;
	struct shai_bytes rest;

	if (shai_decode_request_path(record, &path) == NULL)
		demand(strlen(path.path) < sizeof(path.path));
	if (shai_decode_stub_write(record, &written, &rest) == NULL)
		demand(rest.length > 0 && rest.start + rest.length == record.start + record.length);
	if (shai_decode_answer(record, SEQUENCE, &answer, &rest) == NULL)
		demand(
		    answer.status >= 0 && rest.start + rest.length == record.start + record.length);
	(void)shai_decode_stub_directory(record, &directory);
}

static void
fuzz_view_path(struct shai_bytes record)
{
	static const struct shai_decisions decisions = {.count = 2, .class = {3, 7}};
	char path[64], beneath[128];
	const char *rest;
	uint32_t class;

	if (record.length >= sizeof(path))
		return;
	memcpy(path, record.start, record.length);
	path[record.length] = '\0';
	if (shai_decisions_cover(&decisions, path, 0, &class, &rest))
		demand(class == 3 || class == 7);
	if (shai_path_beneath("/view", path, beneath, sizeof(beneath)) == 0)
		demand(strncmp(beneath, "/view", 5) == 0 && strstr(beneath, "/../") == NULL);
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
	struct shai_opened opened;
	struct shai_transfer transfer;
	struct shai_bytes record;
	size_t count;

	if (size == 0)
		return 0;
	record = (struct shai_bytes){data + 1, size - 1};
	switch (data[0] % 13) {
	case 0:
		fuzz_registered(record);
		break;
	case 1:
		fuzz_connected(record);
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
	case 5:
		fuzz_placed(record);
		break;
	case 6:
		fuzz_request(record);
		break;
	case 7:
		fuzz_view_path(record);
		break;
	case 8:
		fuzz_kept(record);
		break;
	case 9:
		fuzz_grown(record);
		break;
	case 10:
		fuzz_written(record);
		break;
	case 11:
		fuzz_choices(record);
		break;
	default:
		fuzz_path(record);
	}
	return 0;
}

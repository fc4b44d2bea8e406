/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What a user takes of the kernel's memory and of its open files.
 */
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/signal.h>
#include <sys/unistd.h>
#include <sys/wait.h>

#include "check.h"

#define MAPPED 5000
#define COPIES 5

static void
make_copies(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	for (int i = 0; i < COPIES; i++)
		REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
}

/* The entries of maps are the kernel's memory, too. */
static void
memory_of_maps(void)
{
	const char *const zone = "vm.uma.MAP_ENTRY.stats.current";
	char *pages = map_pages(2 * MAPPED);
	int64_t entries, charged;

	for (long i = 0; i < MAPPED; i++)
		REQUIRE_EQUAL(CALL3(SYS_mprotect, pages + i * 2 * 4096, 4096, PROT_READ), 0);
	entries = read_variable(zone);
	charged = read_variable("shai.count.kibibytes");
	make_copies();
	entries = read_variable(zone) - entries;
	charged = read_variable("shai.count.kibibytes") - charged;
	REQUIRE(entries > COPIES * MAPPED);
	REQUIRE(charged * 1024 >= entries * 64);
}

/* The kernel opens what is sent: who may have few descriptors could fill its table of files. */
static void
files_in_flight(void)
{
	int64_t limit = read_variable("shai.limit.files_per_user");
	struct shai_conduit one;
	int ends[2], sent[SHAI_TRANSFER_MAX];
	int64_t before;
	long result;

	sent[0] = open_conduit("/tmp/1", O_RDONLY, &one);
	for (int i = 1; i < SHAI_TRANSFER_MAX; i++)
		sent[i] = sent[0];
	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(CALL3(SYS_fcntl, ends[1], F_SETFL, O_NONBLOCK), 0);
	REQUIRE_EQUAL(write_variable("shai.limit.files_per_user", 3 * SHAI_TRANSFER_MAX + 1), 0);
	before = read_variable("kern.openfiles");
	do
		result = shai_send(ends[1], sent, SHAI_TRANSFER_MAX);
	while (result == 0);
	REQUIRE_EQUAL(write_variable("shai.limit.files_per_user", (uint32_t)limit), 0);
	REQUIRE_EQUAL(result, -EAGAIN);
	REQUIRE_EQUAL(read_variable("shai.count.files_sent"), 3 * SHAI_TRANSFER_MAX);
	REQUIRE(read_variable("kern.openfiles") - before <= 3 * SHAI_TRANSFER_MAX + 20);
	/* What is sent is not counted any more when its channel is closed. */
	REQUIRE_EQUAL(CALL1(SYS_close, ends[0]), 0);
	REQUIRE_EQUAL(read_variable("shai.count.files_sent"), 0);
}

/* "keeps its flags" */
static void
flags_of_the_opened(void)
{
	static const struct lwc_descriptors again = {.first = 3, .last = 3, .mode = LWC_COPY};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	REQUIRE_EQUAL(open_file("/tmp/flags", O_RDWR | O_CREAT | O_FSYNC, 0600), 3);
	REQUIRE_EQUAL(CALL2(SYS_fcntl, 3, F_GETFL), O_RDWR | O_FSYNC);
	spec.descriptors = &again;
	spec.descriptor_count = 1;
	if (create(&spec, &event)) {
		REQUIRE_EQUAL(CALL2(SYS_fcntl, 3, F_GETFL), O_RDWR | O_FSYNC);
		leave(0);
	}
	(void)lwc_switch(event.descriptor, 0, 0, &event);
	leave(1);
}

const struct check share_checks[] = {
    {"what maps take is memory of the user", memory_of_maps, 0},
    {"files in flight are the user's", files_in_flight, 0},
    {"opened again, a descriptor keeps all flags", flags_of_the_opened, 0},
    {NULL, NULL, 0},
};

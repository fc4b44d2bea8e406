/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Lists of mappings in the form of proc_pid_maps(5), and this process's own.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include "linux/mappings.h"

struct list {
	size_t count;
	struct shai_mapping mapping[4];
};

static bool
append(void *context, const struct shai_mapping *mapping)
{
	struct list *list = context;

	assert_true(list->count < 4);
	list->mapping[list->count++] = *mapping;
	return true;
}

static bool
append_one(void *context, const struct shai_mapping *mapping)
{
	(void)append(context, mapping);
	return false;
}

/* Reads a text through a pipe, whose writer gives it in pieces. */
static int
read_text(const char *text, size_t piece, shai_mapping_visitor *visit, struct list *list)
{
	int ends[2], result, error;
	pid_t writer;

	memset(list, 0, sizeof(*list));
	assert_int_equal(pipe2(ends, O_DIRECT), 0); /* a read returns one write */
	writer = fork();
	if (writer == 0) {
		size_t length = strlen(text);

		for (size_t i = 0; i < length; i += piece)
			if (write(ends[1], text + i, length - i < piece ? length - i : piece) < 0)
				_exit(1);
		_exit(0);
	}
	(void)close(ends[1]);
	result = shai_mappings_read(ends[0], visit, list);
	error = errno;
	(void)close(ends[0]);
	assert_int_equal(waitpid(writer, NULL, 0), writer);
	errno = error;
	return result;
}

static const char TEXT[] =
    "55d8c6a00000-55d8c6a02000 r--p 00000000 fe:00 1234                       /usr/bin/a program\n"
    "7ffe4f1c4000-7ffe4f1e5000 rw-p 00000000 00:00 0                          [stack]\n"
    "7ffe4f1f0000-7ffe4f1f1000 -w-s 00000000 00:00 0 \n"
    "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

static void
mappings_are_read_in_pieces_of_every_size(void **state)
{
	static const struct shai_mapping expected[] = {
	    {0x55d8c6a00000, 0x55d8c6a02000, false, false, false},
	    {0x7ffe4f1c4000, 0x7ffe4f1e5000, true, false, true},
	    {0x7ffe4f1f0000, 0x7ffe4f1f1000, true, true, false},
	    {0xffffffffff600000, 0xffffffffff601000, false, false, false},
	};
	struct list list;

	(void)state;
	for (size_t piece = 1; piece <= sizeof(TEXT); piece += 13) {
		assert_int_equal(read_text(TEXT, piece, append, &list), 0);
		assert_int_equal(list.count, 4);
		for (size_t i = 0; i < 4; i++) {
			assert_int_equal(list.mapping[i].start, expected[i].start);
			assert_int_equal(list.mapping[i].end, expected[i].end);
			assert_int_equal(list.mapping[i].writable, expected[i].writable);
			assert_int_equal(list.mapping[i].shared, expected[i].shared);
			assert_int_equal(list.mapping[i].stack, expected[i].stack);
		}
	}
}

static void
a_visitor_ends_the_reading(void **state)
{
	struct list list;

	(void)state;
	assert_int_equal(read_text(TEXT, sizeof(TEXT), append_one, &list), 0);
	assert_int_equal(list.count, 1);
}

static void
malformed_lists_are_refused(void **state)
{
	static const char *const texts[] = {
	    "\n",
	    "1000-2000 rw-p 00000000 00:00 0", /* without an end */
	    "1000 2000 rw-p 00000000 00:00 0 \n",
	    "-2000 rw-p 00000000 00:00 0 \n",
	    "1000-2000\n",
	    "1000-2000 rw\n",
	    "1000-2000 rw-? 00000000 00:00 0 \n",
	    "1000-1000 rw-p 00000000 00:00 0 \n",
	    "2000-1000 rw-p 00000000 00:00 0 \n",
	    "1001-2000 rw-p 00000000 00:00 0 \n",
	    "1000-2001 rw-p 00000000 00:00 0 \n",
	    "1000-g000 rw-p 00000000 00:00 0 \n",
	    "1000-10000000000000000 rw-p 00000000 00:00 0 \n",
	};
	struct list list;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(read_text(texts[i], 4096, append, &list), -1);
		assert_int_equal(errno, EPROTO);
		assert_int_equal(list.count, 0);
	}
}

static void
lines_are_limited(void **state)
{
	char text[SHAI_MAPPING_LINE_MAX + 2];
	struct list list;

	(void)state;
	for (size_t length = SHAI_MAPPING_LINE_MAX; length <= SHAI_MAPPING_LINE_MAX + 1; length++) {
		bool fits = length == SHAI_MAPPING_LINE_MAX;

		memset(text, 'n', length);
		memcpy(text, TEXT, 60);
		text[length - 1] = '\n';
		text[length] = '\0';
		assert_int_equal(read_text(text, 4096, append, &list), fits ? 0 : -1);
		assert_int_equal(list.count, fits ? 1 : 0);
	}
}

struct search {
	uint64_t address;
	struct shai_mapping found;
};

static bool
search(void *context, const struct shai_mapping *mapping)
{
	struct search *wanted = context;

	if (mapping->start <= wanted->address && wanted->address < mapping->end)
		wanted->found = *mapping;
	return true;
}

static void
own_mappings_are_found(void **state)
{
	void *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct search on_stack = {.address = (uint64_t)(uintptr_t)&shared};
	struct search in_shared = {.address = (uint64_t)(uintptr_t)shared};
	struct search in_code = {.address = (uint64_t)(uintptr_t)shai_mappings_visit};

	(void)state;
	assert_int_equal(shai_mappings_visit(search, &on_stack), 0);
	assert_true(on_stack.found.writable && on_stack.found.stack && !on_stack.found.shared);
	assert_int_equal(shai_mappings_visit(search, &in_shared), 0);
	assert_true(in_shared.found.writable && in_shared.found.shared);
	assert_int_equal(shai_mappings_visit(search, &in_code), 0);
	assert_true(in_code.found.end != 0 && !in_code.found.writable);
	assert_int_equal(munmap(shared, 4096), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(mappings_are_read_in_pieces_of_every_size),
	    cmocka_unit_test(a_visitor_ends_the_reading),
	    cmocka_unit_test(malformed_lists_are_refused),
	    cmocka_unit_test(lines_are_limited),
	    cmocka_unit_test(own_mappings_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

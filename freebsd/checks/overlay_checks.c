/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Overlays of another context's memory.
 */
#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/signal.h>

#include "check.h"

static void
overlay_follows(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	volatile char *page = map_pages(4);
	char *here = (char *)0x200000000;
	struct lwc_overlay overlay = {.start = (uint64_t)page,
	    .length = 4 * 4096,
	    .here = (uint64_t)here,
	    .flags = LWC_OVERLAY_WRITE};
	int context;

	page[0] = page[4096] = 'a'; /* the rest has never been touched */
	if (create(&spec, &event)) {
		page[0] = 'b';
		page[8192] = 'c';
		(void)lwc_switch(LWC_CALLER, 0, LWC_CALL, &event);
		REQUIRE_EQUAL(page[4096], 'd');
		REQUIRE_EQUAL(page[12288], 'e');
		page[8192] = 'f';
		(void)lwc_switch(LWC_CALLER, 0, 0, &event);
	}
	context = event.descriptor;
	REQUIRE_EQUAL(lwc_overlay(context, &overlay), 0);
	REQUIRE_EQUAL(here[0], 'a');
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(here[0], 'b');
	REQUIRE_EQUAL(here[8192], 'c');
	REQUIRE_EQUAL(page[0], 'a');
	here[4096] = 'd';
	here[12288] = 'e';
	REQUIRE_EQUAL(lwc_switch(context, 0, LWC_CALL, &event), 0);
	REQUIRE_EQUAL(here[8192], 'f');
	REQUIRE_EQUAL(page[8192], 0);
	/* The mapping stays when the context is discarded. */
	REQUIRE_EQUAL(CALL1(SYS_close, context), 0);
	REQUIRE_EQUAL(here[8192], 'f');
}

static void
overlay_errors(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	char *page = map_pages(4);
	struct lwc_overlay overlay = {
	    .start = (uint64_t)page, .length = 4 * 4096, .here = 0x200000000};
	struct lwc_overlay bad;
	int context;

	REQUIRE_EQUAL(CALL2(SYS_munmap, page + 8192, 4096), 0);
	if (create(&spec, &event))
		leave(1);
	context = event.descriptor;
	REQUIRE_EQUAL(lwc_overlay(context, &overlay), -EFAULT); /* a hole; nothing stays mapped */
	overlay.length = 4096;
	REQUIRE_EQUAL(lwc_overlay(LWC_SELF, &overlay), -EBUSY);
	REQUIRE_EQUAL(lwc_overlay(context, NULL), -EFAULT);
	bad = overlay;
	bad.start += 1;
	REQUIRE_EQUAL(lwc_overlay(context, &bad), -EINVAL);
	bad = overlay;
	bad.length = (uint64_t)-4096;
	REQUIRE_EQUAL(lwc_overlay(context, &bad), -EINVAL);
	bad = overlay;
	bad.flags = 8;
	REQUIRE_EQUAL(lwc_overlay(context, &bad), -EINVAL);
	bad = overlay;
	bad.here = (uint64_t)page;
	REQUIRE_EQUAL(lwc_overlay(context, &bad), -EEXIST);
	REQUIRE_EQUAL(lwc_overlay(context, &overlay), 0);
	REQUIRE_EQUAL(lwc_overlay(context, &overlay), -EEXIST);
	/* Not executable, and not writable unless requested. */
	REQUIRE_EQUAL(CALL3(SYS_mprotect, overlay.here, 4096, PROT_READ | PROT_WRITE), -EACCES);
	REQUIRE_EQUAL(CALL3(SYS_mprotect, overlay.here, 4096, PROT_READ | PROT_EXEC), -EACCES);
}

static void
overlay_is_read_only(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	char *page = map_pages(1);
	struct lwc_overlay overlay = {.start = (uint64_t)page, .length = 4096, .here = 0x200000000};

	page[0] = 'a';
	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(lwc_overlay(event.descriptor, &overlay), 0);
	REQUIRE_EQUAL(*(char *)overlay.here, 'a');
	*(volatile char *)overlay.here = 'b';
	leave(0);
}

/* A file that is mapped for writing cannot be overlaid, in whatever file system. */
static void
no_overlay_of_a_file(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	struct lwc_overlay overlay = {
	    .length = 4096, .here = 0x200000000, .flags = LWC_OVERLAY_WRITE};
	int file = open_file("/tmp/overlaid", O_RDWR | O_CREAT, 0600);
	char *page;

	REQUIRE_EQUAL(CALL2(SYS_ftruncate, file, 4096), 0);
	page = (char *)CALL6(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	page[0] = 'a';
	REQUIRE_EQUAL(CALL1(SYS_unlink, "/tmp/overlaid"), 0);
	if (create(&spec, &event))
		leave(1);
	overlay.start = (uint64_t)page;
	REQUIRE_EQUAL(lwc_overlay(event.descriptor, &overlay), -EOPNOTSUPP);
	overlay.flags = 0;
	REQUIRE_EQUAL(lwc_overlay(event.descriptor, &overlay), -EOPNOTSUPP);
}

/* A copy of a context with an overlay does not have the overlay. */
static void
overlay_is_not_inherited(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	char *page = map_pages(1);
	struct lwc_overlay overlay = {.start = (uint64_t)page, .length = 4096, .here = 0x200000000};

	page[0] = 'a';
	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(lwc_overlay(event.descriptor, &overlay), 0);
	if (create(&spec, &event)) {
		*(volatile char *)overlay.here; /* ends the process */
		leave(0);
	}
	(void)lwc_switch(event.descriptor, 0, 0, &event);
	leave(1);
}

const struct check overlay_checks[] = {
    {"overlay follows both ways", overlay_follows, 0},
    {"errors of lwc_overlay", overlay_errors, 0},
    {"overlay is read-only unless asked", overlay_is_read_only, SIGSEGV},
    {"no overlay of a file mapped for writing", no_overlay_of_a_file, 0},
    {"overlay is not inherited", overlay_is_not_inherited, SIGSEGV},
    {NULL, NULL, 0},
};

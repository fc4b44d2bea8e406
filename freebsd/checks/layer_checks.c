/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Documents that are seen through a layer, nullfs(4): there a document is another conduit
 * than in its own file system, and a grant for one is not a grant for the other.
 */
#include <sys/fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "check.h"

#define LOWER "/tmp/lower"
#define UPPER "/tmp/upper"

/* Returns what nmount(2) does: -ENODEV if the kernel has no nullfs. */
static long
mount_layer(void)
{
	static char words[6][16] = {"fstype", "nullfs", "fspath", UPPER, "target", LOWER};
	struct iovec options[6];

	for (int i = 0; i < 6; i++)
		options[i] = (struct iovec){words[i], text_length(words[i]) + 1};
	return CALL3(SYS_nmount, options, 6, 0);
}

static int
open_at(const char *path, int flags, struct shai_conduit *conduit)
{
	int descriptor = open_file(path, flags, 0);
	struct stat status;

	REQUIRE(descriptor >= 0);
	REQUIRE_EQUAL(CALL2(SYS_fstat, descriptor, &status), 0);
	*conduit = (struct shai_conduit){
	    .device = status.st_dev, .file = status.st_ino, .rights = SHAI_CONDUIT_READ};
	return descriptor;
}

/* Whether a context with one grant receives a file, which then is the one that was sent. */
static bool
is_received(const struct shai_conduit *granted, int sent, const struct shai_conduit *identity)
{
	struct stat status;
	int ends[2], received = -1;
	long result, child = CALL0(SYS_fork);
	char byte = 0;

	if (child != 0)
		return wait_for(child) == 0;
	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(CALL3(SYS_fcntl, ends[0], F_SETFL, O_NONBLOCK), 0);
	REQUIRE_EQUAL(shai_grant(LWC_SELF, granted, 1), 0);
	REQUIRE_EQUAL(shai_send(ends[1], &sent, 1), 0);
	result = shai_receive(ends[0], &received, 1);
	if (result == -EAGAIN)
		leave(2);
	REQUIRE_EQUAL(result, 1);
	REQUIRE_EQUAL(CALL2(SYS_fstat, received, &status), 0);
	if (status.st_dev != identity->device || status.st_ino != identity->file)
		leave(3);
	leave(CALL4(SYS_pread, received, &byte, 1, 0) == 1 && byte == 'l' ? 0 : 4);
}

static void
document_through_a_layer(void)
{
	struct shai_conduit below, above, written;
	int lower, upper;
	long mounted;

	(void)CALL2(SYS_mkdir, LOWER, 0755);
	(void)CALL2(SYS_mkdir, UPPER, 0755);
	REQUIRE(open_conduit(LOWER "/document", O_RDONLY, &written) >= 0);
	mounted = mount_layer();
	if (mounted == -ENODEV) {
		say("        this kernel has no nullfs: not tried\n");
		return;
	}
	REQUIRE_EQUAL(mounted, 0);
	lower = open_at(LOWER "/document", O_RDONLY, &below);
	upper = open_at(UPPER "/document", O_RDONLY, &above);
	REQUIRE(below.device != above.device);
	REQUIRE_EQUAL(below.file, above.file);
	REQUIRE(is_received(&below, lower, &below));
	REQUIRE(is_received(&above, upper, &above));
	REQUIRE(!is_received(&below, upper, &above));
	REQUIRE(!is_received(&above, lower, &below));
	REQUIRE_EQUAL(CALL1(SYS_close, upper), 0);
	REQUIRE_EQUAL(CALL2(SYS_unmount, UPPER, 0), 0);
}

const struct check layer_checks[] = {
    {"a document through nullfs is another conduit", document_through_a_layer, 0},
    {NULL, NULL, 0},
};

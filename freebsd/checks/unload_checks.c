/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The module stays loaded while anything of it can still be called.
 */
#include <sys/fcntl.h>
#include <sys/ioccom.h>
#include <sys/linker.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "check.h"

#define KEPT 50 /* a context's descriptor that outlives execve(2) */

/* The module stays while a descriptor of a context, even a dead one, can be closed. */
int
executed_with_descriptor(void)
{
	long module = CALL1(SYS_kldfind, "shai.ko");

	if (read_variable("shai.count.processes") != 0)
		return 25;
	if (read_variable("shai.count.files") != 1)
		return 26;
	if (CALL1(SYS_kldunload, module) != -EBUSY)
		return 27;
	if (CALL1(SYS_close, KEPT) != 0)
		return 28;
	return read_variable("shai.count.files") == 0 ? 0 : 29;
}

static void
unload_is_refused(void)
{
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	long module = CALL1(SYS_kldfind, "shai.ko");
	int ends[2];

	REQUIRE(module > 0);
	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(CALL1(SYS_kldunload, module), -EBUSY);
	REQUIRE_EQUAL(CALL1(SYS_close, ends[0]), 0);
	REQUIRE_EQUAL(CALL1(SYS_kldunload, module), -EBUSY);
	REQUIRE_EQUAL(CALL1(SYS_close, ends[1]), 0);
	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(CALL1(SYS_close, event.descriptor), 0);
	REQUIRE_EQUAL(CALL1(SYS_kldunload, module), -EBUSY);
	/* Not even with LINKER_UNLOAD_FORCE. */
	REQUIRE(CALL2(SYS_kldunloadf, module, 1) < 0);
}

/* dup2(2) clears close-on-exec. */
static void
unload_is_refused_for_a_descriptor(void)
{
	static const char descriptor[] = "descriptor";
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(CALL2(SYS_dup2, event.descriptor, KEPT), KEPT);
	execute(descriptor);
}

static struct iovec
text_part(const char *text)
{
	return (struct iovec){(void *)(uintptr_t)text, text_length(text) + 1};
}

/* The kernel mounts the root for reading. */
static void
make_root_writable(void)
{
	struct iovec options[] = {text_part("fstype"), text_part("ufs"), text_part("fspath"),
	    text_part("/"), text_part("rw"), {NULL, 0}};

	REQUIRE_EQUAL(CALL3(SYS_nmount, options, 6, MNT_UPDATE), 0);
}

/* Suspends writing to the file system of the path until the descriptor is closed. */
static int
suspend(const char *path)
{
	const unsigned long command = _IOW('U', 1, fsid_t);
	struct statfs status;
	int device = open_file("/dev/ufssuspend", O_RDWR, 0);

	REQUIRE(device >= 0);
	REQUIRE_EQUAL(CALL2(SYS_statfs, path, &status), 0);
	REQUIRE_EQUAL(CALL3(SYS_ioctl, device, command, &status.f_fsid), 0);
	return device;
}

/*
 * The end that is closed last frees the channel, while the close of the other still drops
 * files: until it has come back from there, the module stays.
 */
static void
unload_is_refused_during_a_close(void)
{
	long child, module = CALL1(SYS_kldfind, "shai.ko");
	int ends[2], go[2], held, other, suspended;
	char byte;

	make_root_writable();
	held = open_file("/held", O_RDWR | O_CREAT, 0600);
	other = open_file("/tmp/other", O_RDWR | O_CREAT, 0600);
	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(CALL2(SYS_pipe2, go, 0), 0);
	REQUIRE_EQUAL(shai_send(ends[1], &held, 1), 0);
	child = CALL0(SYS_fork);
	if (child == 0) {
		REQUIRE_EQUAL(CALL1(SYS_close, ends[1]), 0);
		REQUIRE_EQUAL(CALL3(SYS_read, go[0], &byte, 1), 1);
		leave(CALL1(SYS_close, ends[0]) == 0 ? 0 : 1); /* waits for the file system */
	}
	REQUIRE_EQUAL(CALL1(SYS_close, ends[0]), 0);
	REQUIRE_EQUAL(CALL3(SYS_fcntl, ends[1], F_SETFL, O_NONBLOCK), 0);
	suspended = suspend("/held");
	REQUIRE_EQUAL(CALL3(SYS_write, go[1], "x", 1), 1);
	while (shai_send(ends[1], &other, 1) != -EPIPE)
		(void)CALL0(SYS_sched_yield);
	REQUIRE_EQUAL(CALL1(SYS_close, ends[1]), 0);
	REQUIRE_EQUAL(CALL1(SYS_kldunload, module), -EBUSY);
	REQUIRE_EQUAL(read_variable("shai.count.files"), 1);
	REQUIRE_EQUAL(CALL1(SYS_close, suspended), 0);
	REQUIRE_EQUAL(wait_for(child), 0);
}

/*
 * A program that is executed has no contexts any more while its call has not ended: here
 * it waits in the close of a descriptor. Then the module may go.
 */
static void
unload_during_an_execution(void)
{
	static const char nothing[] = "nothing";
	static struct kld_file_stat status = {.version = sizeof(status)};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	long child, module = CALL1(SYS_kldfind, "shai.ko");
	int there[2], suspended;
	char byte;

	REQUIRE_EQUAL(CALL2(SYS_kldstat, module, &status), 0);
	make_root_writable();
	REQUIRE_EQUAL(CALL2(SYS_pipe2, there, 0), 0);
	child = CALL0(SYS_fork);
	if (child == 0) {
		REQUIRE(open_file("/held", O_RDWR | O_CREAT | O_CLOEXEC, 0600) >= 0);
		REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
		REQUIRE_EQUAL(CALL1(SYS_close, event.descriptor), 0);
		REQUIRE_EQUAL(CALL3(SYS_read, there[0], &byte, 1), 1);
		execute(nothing);
	}
	while (read_variable("shai.count.processes") == 0)
		(void)CALL0(SYS_sched_yield);
	suspended = suspend("/held");
	REQUIRE_EQUAL(CALL3(SYS_write, there[1], "x", 1), 1);
	while (read_variable("shai.count.processes") != 0)
		(void)CALL0(SYS_sched_yield);
	REQUIRE_EQUAL(CALL1(SYS_kldunload, module), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, suspended), 0);
	REQUIRE_EQUAL(wait_for(child), 20); /* the program finds no module */
	REQUIRE(CALL1(SYS_kldload, status.pathname) > 0);
}

/* A file on its way through a socket is in no table. */
static void
unload_is_refused_in_flight(void)
{
	struct {
		struct cmsghdr header;
		int descriptor __attribute__((aligned(8)));
	} control = {.header = {.cmsg_len = CMSG_LEN(sizeof(int)),
			 .cmsg_level = SOL_SOCKET,
			 .cmsg_type = SCM_RIGHTS}};
	char byte = 'x';
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part,
	    .msg_iovlen = 1,
	    .msg_control = &control,
	    .msg_controllen = CMSG_SPACE(sizeof(int))};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;
	long module = CALL1(SYS_kldfind, "shai.ko");
	int ends[2], sockets[2];

	REQUIRE_EQUAL(shai_channel(ends), 0);
	REQUIRE_EQUAL(CALL4(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	control.descriptor = ends[0];
	REQUIRE_EQUAL(CALL3(SYS_sendmsg, sockets[0], &message, 0), 1);
	REQUIRE_EQUAL(CALL1(SYS_close, ends[0]), 0);
	REQUIRE_EQUAL(CALL1(SYS_close, ends[1]), 0);
	REQUIRE_EQUAL(CALL1(SYS_kldunload, module), -EBUSY);
	REQUIRE_EQUAL(CALL1(SYS_close, sockets[0]), 0);
	REQUIRE_EQUAL(CALL1(SYS_kldunload, module), -EBUSY);
	REQUIRE_EQUAL(CALL1(SYS_close, sockets[1]), 0);
	while (read_variable("shai.count.files") != 0) /* closed by a thread of the kernel */
		(void)CALL0(SYS_sched_yield);
	/* The descriptor of a context does not get there. */
	if (create(&spec, &event))
		leave(1);
	REQUIRE_EQUAL(CALL4(SYS_socketpair, AF_UNIX, SOCK_STREAM, 0, sockets), 0);
	control.descriptor = event.descriptor;
	REQUIRE_EQUAL(CALL3(SYS_sendmsg, sockets[0], &message, 0), -EOPNOTSUPP);
}

const struct check unload_checks[] = {
    {"unloading is refused while in use", unload_is_refused, 0},
    {"unloading is refused for a descriptor kept by execve", unload_is_refused_for_a_descriptor, 0},
    {"unloading is refused in the middle of a close", unload_is_refused_during_a_close, 0},
    {"unloading in the middle of execve", unload_during_an_execution, 0},
    {"unloading is refused for a file in flight", unload_is_refused_in_flight, 0},
    {NULL, NULL, 0},
};

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A program that knows nothing of libshai, run by preload_test.sh under launch:
 * it uses the C library on mapped paths. Halfway it gives itself a filter that
 * refuses what a monitor would have to be asked about; from then on everything
 * has to go natively through the capability descriptors.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			(void)fprintf(                                                             \
			    stderr, "%s:%d: not so: %s (%m)\n", __FILE__, __LINE__, #condition);   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* No compile-time knowledge, so that the compiler removes no call. */
static const char *volatile host_file = "/etc/passwd";

/*
 * Refuses with EDOM, which nothing else returns here, what the real filter sends
 * to the monitor: path calls without a directory, *at calls that are not relative
 * to a capability (16..31), and O_PATH opens and access checks in the view (16).
 * Those of the index (17) are let through, as if the monitor had answered.
 */
static void
refuse_mediated_calls(void)
{
#define REFUSE(number)                                                                             \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1),                                       \
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM)
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    REFUSE(SYS_open),
	    REFUSE(SYS_stat),
	    REFUSE(SYS_lstat),
	    REFUSE(SYS_newfstatat),
	    REFUSE(SYS_statx),
	    REFUSE(SYS_statfs),
	    REFUSE(SYS_access),
	    REFUSE(SYS_faccessat2),
	    REFUSE(SYS_readlink),
	    REFUSE(SYS_mkdir),
	    REFUSE(SYS_rmdir),
	    REFUSE(SYS_unlink),
	    REFUSE(SYS_rename),
	    REFUSE(SYS_link),
	    REFUSE(SYS_truncate),
	    REFUSE(SYS_chmod),
	    REFUSE(SYS_utimes),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 6, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_faccessat, 7, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdirat, 9, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_unlinkat, 8, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat, 7, 0),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 6, 0),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	    /* openat */
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
	    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_PATH, 0, 3),
	    /* openat with O_PATH, and faccessat */
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 17, 0, 5),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	    /* calls that are native relative to a capability */
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
	    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 32, 2, 0),
	    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 16, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EDOM),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* The C library asks for a status by newfstatat after our open. */
static void
streams_and_listings(void)
{
	struct dirent *entry;
	char line[64] = "";
	size_t count = 0;
	FILE *stream;
	DIR *listing = opendir("/index/");

	CHECK(listing != NULL);
	while ((entry = readdir(listing)) != NULL)
		count++;
	CHECK(count == 2 && closedir(listing) == 0);
	CHECK(opendir("/index/none") == NULL && errno == ENOENT);
	CHECK(opendir("/shai/pipe/queries/0") == NULL && errno == ENOTDIR);
	stream = fopen("/index/stream", "wex");
	CHECK(stream != NULL && fputs("streamed\n", stream) > 0 && fclose(stream) == 0);
	CHECK(fopen("/index/stream", "wx") == NULL && errno == EEXIST);
	stream = fopen64("/index/stream", "r");
	CHECK(stream != NULL && fgets(line, sizeof(line), stream) == line && fclose(stream) == 0);
	CHECK(strcmp(line, "streamed\n") == 0);
	CHECK(fopen("/index/stream", "?") == NULL && errno == EINVAL);
	CHECK(unlink("/index/stream") == 0);
}

/* With the filter in force these must fail, or the checks below prove nothing. */
static void
the_filter_bites(void)
{
	struct stat status;

	CHECK(open(host_file, O_RDONLY) == -1 && errno == EDOM);
	CHECK(stat(host_file, &status) == -1 && errno == EDOM);
	CHECK(access(host_file, R_OK) == -1 && errno == EDOM);
	CHECK(mkdir("/nowhere/x", 0700) == -1 && errno == EDOM);
	CHECK(open("/index/../etc/passwd", O_RDONLY) == -1 && errno == EDOM);
	CHECK(open("/shai/view/../../../etc/passwd", O_RDONLY) == -1 && errno == EDOM);
	CHECK(open("index/a", O_RDONLY) == -1 && errno == EDOM);
	CHECK(rename("/nowhere/a", "/index/a") == -1 && errno == EDOM);
}

static void
reading(void)
{
	char text[64] = "";
	int descriptor = open("/shai/view/3/0/17", O_RDONLY | O_CLOEXEC);

	CHECK(descriptor >= 0);
	CHECK(read(descriptor, text, sizeof(text)) == 9 && strcmp(text, "seventeen") == 0);
	CHECK(close(descriptor) == 0);
	descriptor = openat(AT_FDCWD, "//shai/./view//3/../3/0/17", O_RDONLY);
	CHECK(descriptor >= 0 && close(descriptor) == 0);
	CHECK(open64("/shai/view/3/0/18", O_RDONLY) == -1 && errno == ENOENT);
	CHECK(open("/shai/view/3/0/17/", O_RDONLY) == -1 && errno == ENOTDIR);
}

static void
statuses(void)
{
	struct stat status;
	struct stat64 status64;
	struct statx extended;
	struct statvfs system;
	int descriptor;

	CHECK(stat("/shai/view/3/0/17", &status) == 0 && status.st_size == 9);
	CHECK(lstat64("/shai/view/3", &status64) == 0 && S_ISDIR(status64.st_mode));
	CHECK(stat("/index", &status) == 0 && S_ISDIR(status.st_mode));
	CHECK(stat("/index/none", &status) == -1 && errno == ENOENT);
	CHECK(fstatat(AT_FDCWD, "/shai/view/3/0/17", &status, AT_SYMLINK_NOFOLLOW) == 0);
	CHECK(statx(AT_FDCWD, "/shai/view/3/0/17", 0, STATX_BASIC_STATS, &extended) == 0);
	CHECK(extended.stx_size == 9 && extended.stx_ino == status.st_ino);
	CHECK(extended.stx_mtime.tv_sec == status.st_mtim.tv_sec);
	descriptor = open("/shai/view/3/0/17", O_RDONLY);
	CHECK(fstat(descriptor, &status) == 0 && status.st_size == 9);
	CHECK(fstatat64(descriptor, "", &status64, AT_EMPTY_PATH) == 0 && status64.st_size == 9);
	CHECK(statx(descriptor, "", AT_EMPTY_PATH, STATX_SIZE, &extended) == 0);
	CHECK(extended.stx_size == 9 && close(descriptor) == 0);
	CHECK(statvfs("/index", &system) == 0 && system.f_bsize > 0);
	CHECK(access("/shai/view/3/0/17", R_OK) == 0);
	CHECK(access("/shai/view/3/0/18", F_OK) == -1 && errno == ENOENT);
	CHECK(access("/shai/view/3/0/17", W_OK) == -1 && errno == EDOM); /* asks */
}

static void
names(void)
{
	char resolved[PATH_MAX];
	char *allocated = realpath("/index/./none/..", NULL);
	int descriptor;

	CHECK(allocated != NULL && strcmp(allocated, "/index") == 0);
	free(allocated);
	CHECK(realpath("/shai/view/3/0/../0/17", resolved) == resolved);
	CHECK(strcmp(resolved, "/shai/view/3/0/17") == 0);
	CHECK(realpath("/index/none", resolved) == NULL && errno == ENOENT);
	CHECK(readlink("/index", resolved, sizeof(resolved)) == -1);
	CHECK(mkdir("/index", 0700) == -1 && errno == EEXIST);
	CHECK(mkdir("/index/0", 0700) == 0 && mkdir("/index/0/", 0700) == -1);
	descriptor = creat("/index/0/a", 0600);
	CHECK(descriptor >= 0 && write(descriptor, "abc", 3) == 3 && close(descriptor) == 0);
	CHECK(open("/index/0/a", O_CREAT | O_EXCL | O_WRONLY, 0600) == -1 && errno == EEXIST);
	CHECK(truncate("/index/0/a", 1) == 0);
	CHECK(link("/index/0/a", "/index/0/b") == 0);
	CHECK(rename("/index/0/a", "/index/0/c") == 0);
	CHECK(renameat(AT_FDCWD, "/index/0/b", AT_FDCWD, "/index/0/c") == 0);
	CHECK(chmod("/index/0/c", 0640) == 0);
	CHECK(utimes("/index/0/c", (struct timeval[]){{1, 0}, {2, 0}}) == 0);
	CHECK(utimes("/index/0/c", NULL) == 0);
	CHECK(rmdir("/index/0") == -1 && errno == ENOTEMPTY);
	CHECK(unlink("/index/0/b") == 0); /* renaming onto its own link did nothing */
	CHECK(remove("/index/0/c") == 0 && remove("/index/0") == 0);
}

/* Looking at a file must not drop the process's locks on it, as opening and closing it does. */
static void
locks_survive_looking(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	struct stat status;
	int descriptor = open("/index/write.lock", O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	int result = -1;

	CHECK(descriptor >= 0 && fcntl(descriptor, F_SETLK, &lock) == 0);
	CHECK(stat("/index/write.lock", &status) == 0);
	CHECK(access("/index/write.lock", R_OK | W_OK) == 0);
	free(realpath("/index/write.lock", NULL));
	if (fork() == 0) {
		CHECK(fcntl(descriptor, F_GETLK, &lock) == 0);
		_exit(lock.l_type == F_UNLCK);
	}
	CHECK(wait(&result) > 0 && result == 0);
	CHECK(close(descriptor) == 0 && unlink("/index/write.lock") == 0);
}

static void
pipes_and_channels(void)
{
	const uint32_t transfer[] = {17, 0, 5, 6};
	struct stat status;
	char text[256];

	CHECK(open("/shai/pipe/queries/0", O_RDONLY) == 32);
	CHECK(stat("/shai/pipe/queries/0", &status) == 0 && S_ISFIFO(status.st_mode));
	CHECK(access("/shai/pipe/queries/0", R_OK) == 0);
	CHECK(access("/shai/pipe/queries/0", W_OK) == -1 && errno == EACCES);
	CHECK(read(32, text, sizeof(text)) > 0 && text[0] == '{');
	CHECK(open("/shai/channel/results/0", O_WRONLY | O_CREAT | O_TRUNC, 0600) == 96);
	CHECK(write(96, transfer, sizeof(transfer)) == sizeof(transfer));
	CHECK(open("/shai/pipe/queries/1", O_RDONLY) == -1 && errno == EDOM);
	CHECK(unlink("/shai/pipe/queries/0") == -1 && errno == EPERM);
	CHECK(rename("/index/0", "/shai/pipe/queries/0") == -1 && errno == EPERM);
	CHECK(close(32) == 0);
	CHECK(open("/shai/pipe/queries/0", O_RDONLY) == -1 && errno == ENXIO);
}

int
main(void)
{
	struct stat status;

	CHECK(stat(host_file, &status) == 0 && access(host_file, F_OK) == 0);
	streams_and_listings();
	refuse_mediated_calls();
	the_filter_bites();
	reading();
	statuses();
	names();
	locks_survive_looking();
	pipes_and_channels();
	(void)printf("preloaded: all is well\n");
	return 0;
}

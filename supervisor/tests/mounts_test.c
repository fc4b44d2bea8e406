/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What the descriptor of a class's directory gives, and how many are kept.
 */
#include "testing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mounts.h"

#define NOBODY 65534
#define CLASSES 6

static char directory[64];
static int view;

static void
write_file(const char *name)
{
	int file = openat(view, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_true(file >= 0);
	assert_int_equal(write(file, "text", 4), 4);
	close(file);
}

static int
make_view(void **state)
{
	char name[16];

	(void)state;
	strcpy(directory, "/tmp/supervisor-test.XXXXXX");
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chmod(directory, 0755), 0);
	view = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(view >= 0);
	for (int class = 1; class <= CLASSES; class ++) {
		snprintf(name, sizeof(name), "%d", class);
		assert_int_equal(mkdirat(view, name, 0755), 0);
		snprintf(name, sizeof(name), "%d/17", class);
		write_file(name);
	}
	write_file("2/other");
	assert_int_equal(symlinkat("../2/other", view, "1/link"), 0);
	assert_int_equal(symlinkat("1", view, "70"), 0);
	return 0;
}

static int
remove_one(const char *path, const struct stat *status, int flag, struct FTW *place)
{
	(void)status;
	(void)flag;
	(void)place;
	return remove(path);
}

static int
remove_view(void **state)
{
	(void)state;
	close(view);
	return nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Skips the test on a machine where there are no detached mounts. */
static struct mounts *
table(size_t max)
{
	struct mounts *mounts = mounts_new(view, max);

	assert_non_null(mounts);
	if (!mounts_available(mounts)) {
		mounts_free(mounts);
		print_message("detached mounts need Linux 5.12 and the superuser's rights\n");
		skip();
	}
	return mounts;
}

static struct mount *
hold(struct mounts *mounts, uint32_t class)
{
	struct mount *held = NULL;

	assert_int_equal(mounts_hold(mounts, &class, 1, &held), 0);
	return held;
}

/* Opens beneath a directory. Returns 0, or errno. */
static int
opened(int beneath, const char *name, int flags)
{
	int file = openat(beneath, name, flags | O_CLOEXEC, 0644);

	if (file < 0)
		return errno;
	close(file);
	return 0;
}

static int
descriptors(void)
{
	DIR *entries = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(entries);
	while (readdir(entries) != NULL)
		count++;
	closedir(entries);
	return count;
}

static void
a_mount_reads_its_directory_and_nothing_else(void **state)
{
	struct mounts *mounts = table(4);
	struct mount *held = hold(mounts, 1);
	int beneath = mount_descriptor(held);

	(void)state;
	assert_int_equal(opened(beneath, "17", O_RDONLY), 0);
	assert_int_equal(opened(beneath, "../2/other", O_RDONLY), ENOENT);
	assert_int_equal(opened(beneath, "../../../../etc/passwd", O_RDONLY), ENOENT);
	assert_int_equal(opened(beneath, "../17", O_RDONLY), 0); /* ".." is the directory itself */
	assert_int_equal(opened(beneath, "link", O_RDONLY), ELOOP);
	assert_int_equal(opened(beneath, "17", O_WRONLY), EROFS);
	assert_int_equal(opened(beneath, "new", O_WRONLY | O_CREAT), EROFS);
	assert_int_equal(unlinkat(beneath, "17", 0), -1);
	assert_int_equal(errno, EROFS);
	assert_int_equal(opened(view, "1/17", O_WRONLY), 0); /* outside of the mount */
	mounts_release(mounts, &held, 1);
	mounts_free(mounts);
}

/* Both attributes, read-only and without times of access, see to it. */
static void
reading_leaves_no_time_of_access(void **state)
{
	const struct timespec long_ago[2] = {{.tv_sec = 1000}, {.tv_sec = 1000000000}};
	struct mounts *mounts = table(4);
	struct mount *held = hold(mounts, 3);
	struct stat status;
	char byte;
	int file;

	(void)state;
	assert_int_equal(utimensat(view, "3/17", long_ago, 0), 0);
	file = openat(mount_descriptor(held), "17", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(file, &byte, 1), 1);
	close(file);
	assert_int_equal(fstatat(view, "3/17", &status, 0), 0);
	assert_int_equal(status.st_atim.tv_sec, 1000);
	mounts_release(mounts, &held, 1);
	mounts_free(mounts);
}

static void
a_mount_is_shared_and_kept(void **state)
{
	struct mounts *mounts = table(4);
	struct mount *first = hold(mounts, 1), *second = hold(mounts, 1);

	(void)state;
	assert_ptr_equal(first, second);
	mounts_release(mounts, &first, 1);
	mounts_release(mounts, &second, 1);
	assert_ptr_equal(hold(mounts, 1), first);
	mounts_release(mounts, &first, 1);
	mounts_free(mounts);
}

static void
mounts_unused_for_the_longest_time_are_given_up(void **state)
{
	const uint32_t all[] = {1, 2, 3, 4, 5, 6};
	struct mounts *mounts = table(2);
	struct mount *held[COUNT(all)], *second;
	int before = descriptors();

	(void)state;
	assert_int_equal(mounts_hold(mounts, all, COUNT(all), held), 0);
	assert_int_equal(descriptors(), before + 6); /* held ones are not given up */
	second = held[1];
	mounts_release(mounts, held, COUNT(all));
	assert_int_equal(descriptors(), before + 2);
	assert_ptr_equal(hold(mounts, 6), held[5]);
	second = hold(mounts, 2); /* given up before: a new one */
	mounts_release(mounts, &second, 1);
	assert_int_equal(descriptors(), before + 2); /* 5 is gone, 6 is held */
	mounts_release(mounts, &held[5], 1);
	mounts_free(mounts);
	assert_int_equal(descriptors(), before);
}

static void
equal_buckets_are_told_apart(void **state)
{
	const uint32_t both[] = {1, 17, 33}; /* of 16 buckets, the same */
	struct mounts *mounts = table(8);
	struct mount *held[COUNT(both)];

	(void)state;
	assert_int_equal(mkdirat(view, "17", 0755), 0);
	assert_int_equal(mkdirat(view, "33", 0755), 0);
	assert_int_equal(mounts_hold(mounts, both, COUNT(both), held), 0);
	assert_int_equal(opened(mount_descriptor(held[0]), "17", O_RDONLY), 0);
	assert_int_equal(opened(mount_descriptor(held[1]), "17", O_RDONLY), ENOENT);
	assert_ptr_not_equal(held[1], held[2]);
	mounts_release(mounts, held, COUNT(both));
	mounts_free(mounts);
}

static void
without_a_directory_none_is_held(void **state)
{
	const uint32_t missing[] = {1, 2, 69}, link[] = {1, 70};
	struct mounts *mounts = table(1);
	struct mount *held[COUNT(missing)];
	int before = descriptors();

	(void)state;
	assert_int_equal(mounts_hold(mounts, missing, COUNT(missing), held), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(mounts_hold(mounts, link, COUNT(link), held), -1);
	assert_int_equal(errno, ELOOP);
	assert_int_equal(descriptors(), before + 1);
	mounts_free(mounts);
	assert_int_equal(descriptors(), before);
}

/* Returns how many mounts of the view this process sees. */
static int
seen(void)
{
	FILE *mounts = fopen("/proc/self/mountinfo", "re");
	char line[4096];
	int count = 0;

	if (mounts == NULL)
		return -1;
	while (fgets(line, sizeof(line), mounts) != NULL)
		count += strstr(line, strrchr(directory, '/')) != NULL;
	(void)fclose(mounts);
	return count;
}

/* In a process of its own: returns 0 if a detached view is mounted, and can be cloned. */
static int
mount_view(void)
{
	int detached = open_tree(view, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	struct mounts *mounts;
	bool available;

	if (detached < 0 || mounts_separate() != NULL || seen() != 0)
		return 1;
	mounts = mounts_new(detached, 1);
	available = mounts != NULL && mounts_available(mounts);
	mounts_free(mounts);
	return available && seen() == 1 && access(directory, F_OK) == 0 ? 0 : 2;
}

static void
a_detached_view_is_mounted_where_nobody_else_sees_it(void **state)
{
	int status;
	pid_t child;

	(void)state;
	mounts_free(table(1));
	child = fork();
	if (child == 0)
		_exit(mount_view());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(seen(), 0);
}

static void
without_privileges_there_are_none(void **state)
{
	int status;
	pid_t child = fork();

	(void)state;
	if (child == 0) {
		struct mounts *mounts;
		bool available;

		if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
			_exit(2);
		mounts = mounts_new(view, 1);
		available = mounts == NULL || mounts_available(mounts);
		mounts_free(mounts);
		_exit(available ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_mount_reads_its_directory_and_nothing_else),
	    cmocka_unit_test(reading_leaves_no_time_of_access),
	    cmocka_unit_test(a_mount_is_shared_and_kept),
	    cmocka_unit_test(mounts_unused_for_the_longest_time_are_given_up),
	    cmocka_unit_test(equal_buckets_are_told_apart),
	    cmocka_unit_test(without_a_directory_none_is_held),
	    cmocka_unit_test(a_detached_view_is_mounted_where_nobody_else_sees_it),
	    cmocka_unit_test(without_privileges_there_are_none),
	};

	return cmocka_run_group_tests_name("mounts", tests, make_view, remove_view);
}

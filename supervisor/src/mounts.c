/* SPDX-License-Identifier: BSD-2-Clause */
#include "mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/queue.h>
#include <sys/syscall.h>
#include <unistd.h>

/*
 * Nothing is written or executed, no symbolic link is followed, and reading leaves no
 * trace that another session could see.
 */
#define ATTRIBUTES                                                                                 \
	(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC |            \
	    MOUNT_ATTR_NOSYMFOLLOW | MOUNT_ATTR_NOATIME)

struct mount {
	TAILQ_ENTRY(mount) unused; /* while it has no users */
	struct mount *chain;       /* of its bucket */
	uint32_t class;
	int descriptor;
	size_t users;
};

struct mounts {
	int view;
	bool available;
	size_t max, count;
	TAILQ_HEAD(unused_mounts, mount) unused; /* the first was used last */
	size_t buckets;                          /* a power of 2 */
	struct mount *bucket[];
};

/* Makes a mount of a directory beneath the view. Returns its descriptor, or -1 with errno. */
static int
make(int view, const char *name)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	struct mount_attr attributes = {
	    .attr_set = ATTRIBUTES, .attr_clr = MOUNT_ATTR__ATIME, .propagation = MS_PRIVATE};
	int place = (int)syscall(SYS_openat2, view, name, &how, sizeof(how)), tree, error;

	if (place < 0)
		return -1;
	tree = open_tree(place, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	error = errno;
	close(place);
	errno = error;
	if (tree < 0)
		return -1;
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attributes, sizeof(attributes)) != 0) {
		error = errno;
		close(tree);
		errno = error;
		return -1;
	}
	return tree;
}

static bool separate;

const char *
mounts_separate(void)
{
	if (unshare(CLONE_NEWNS) != 0)
		return errno == EPERM ? NULL : "make a mount namespace";
	if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) != 0)
		return "separate the mount namespace";
	separate = true;
	return NULL;
}

struct mounts *
mounts_new(int view, size_t max)
{
	size_t buckets = 16;
	struct mounts *mounts;
	int tried;

	while (buckets < max)
		buckets *= 2;
	mounts = calloc(1, sizeof(*mounts) + buckets * sizeof(mounts->bucket[0]));
	if (mounts == NULL)
		return NULL;
	mounts->view = view;
	mounts->max = max;
	mounts->buckets = buckets;
	TAILQ_INIT(&mounts->unused);
	/* Whether it was mounted, or need not be, the attempt shows. It covers no path: those of
	 * this process begin at the root beneath it. */
	if (separate)
		(void)move_mount(view, "", AT_FDCWD, "/", MOVE_MOUNT_F_EMPTY_PATH);
	tried = make(view, ".");
	mounts->available = tried >= 0;
	if (tried >= 0)
		close(tried);
	return mounts;
}

bool
mounts_available(const struct mounts *mounts)
{
	return mounts->available;
}

int
mount_descriptor(const struct mount *mount)
{
	return mount->descriptor;
}

/* Classes are numbered without gaps, so they are their own hash values. */
static struct mount **
place_of(struct mounts *mounts, uint32_t class)
{
	struct mount **place = &mounts->bucket[class & (mounts->buckets - 1)];

	while (*place != NULL && (*place)->class != class)
		place = &(*place)->chain;
	return place;
}

static void
give_up(struct mounts *mounts, struct mount *mount)
{
	TAILQ_REMOVE(&mounts->unused, mount, unused);
	*place_of(mounts, mount->class) = mount->chain;
	mounts->count--;
	close(mount->descriptor);
	free(mount);
}

static void
release_one(struct mounts *mounts, struct mount *mount)
{
	if (--mount->users > 0)
		return;
	TAILQ_INSERT_HEAD(&mounts->unused, mount, unused);
	while (mounts->count > mounts->max && !TAILQ_EMPTY(&mounts->unused))
		give_up(mounts, TAILQ_LAST(&mounts->unused, unused_mounts));
}

/* Makes the mount of a class that has none, in its place. Returns it, or NULL with errno. */
static struct mount *
add(struct mounts *mounts, uint32_t class, struct mount **place)
{
	struct mount *mount = calloc(1, sizeof(*mount));
	char name[sizeof("4294967295")];

	if (mount == NULL)
		return NULL;
	snprintf(name, sizeof(name), "%u", class);
	mount->class = class;
	mount->descriptor = make(mounts->view, name);
	if (mount->descriptor < 0) {
		free(mount);
		return NULL;
	}
	*place = mount;
	mounts->count++;
	return mount;
}

int
mounts_hold(struct mounts *mounts, const uint32_t *classes, size_t count, struct mount *held[])
{
	for (size_t i = 0; i < count; i++) {
		struct mount **place = place_of(mounts, classes[i]);
		struct mount *mount = *place;

		if (mount == NULL) {
			mount = add(mounts, classes[i], place);
		} else if (mount->users == 0) {
			TAILQ_REMOVE(&mounts->unused, mount, unused);
		}
		if (mount == NULL) {
			int error = errno;

			mounts_release(mounts, held, i);
			errno = error;
			return -1;
		}
		mount->users++;
		held[i] = mount;
	}
	return 0;
}

void
mounts_release(struct mounts *mounts, struct mount *const held[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		release_one(mounts, held[i]);
}

void
mounts_free(struct mounts *mounts)
{
	if (mounts == NULL)
		return;
	for (size_t i = 0; i < mounts->buckets; i++) {
		struct mount *next;

		for (struct mount *mount = mounts->bucket[i]; mount != NULL; mount = next) {
			next = mount->chain;
			close(mount->descriptor);
			free(mount);
		}
	}
	free(mounts);
}

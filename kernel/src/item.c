/* SPDX-License-Identifier: BSD-2-Clause */
#include "item.h"

#include <sys/capsicum.h>
#include <sys/fcntl.h>
#include <sys/stat.h>
#include <sys/vnode.h>

#include "compat.h"
#include "reopen.h"

/*
 * The limits of a received descriptor: reading, writing, mapping, and asking
 * for its status. A sender's own limits are not passed on. Lists of ioctls and
 * sets of rights would carry data, and locks, modes and times of the file would
 * carry it back and forth.
 */
static void
limits_of(u_int flags, struct filecaps *limits)
{
	filecaps_init(limits);
	limits->fc_nioctls = 0;
	limits->fc_fcntls = CAP_FCNTL_GETFL; /* which libraries ask for */
	(void)cap_rights_init(
	    &limits->fc_rights, CAP_SEEK, CAP_FSTAT, CAP_FCNTL);
	if ((flags & FREAD) != 0)
		(void)cap_rights_set(&limits->fc_rights, CAP_MMAP_R);
	if ((flags & FWRITE) != 0)
		(void)cap_rights_set(
		    &limits->fc_rights, CAP_WRITE, CAP_FTRUNCATE, CAP_FSYNC);
	if ((flags & (FREAD | FWRITE)) == (FREAD | FWRITE))
		(void)cap_rights_set(&limits->fc_rights, CAP_MMAP_RW);
}

/* Checks that a receiver will have no right that the sender's descriptor lacks.
 */
static int
check_limits(u_int flags, const struct filecaps *held)
{
	struct filecaps limits;

	limits_of(flags, &limits);
	if (!cap_rights_contains(&held->fc_rights, &limits.fc_rights) ||
	    (limits.fc_fcntls & ~held->fc_fcntls) != 0)
		return (ENOTCAPABLE);
	return (0);
}

/* Fills in the conduit of an open file, as fstat(2) tells it. */
static int
identify(struct thread *td, struct item *item)
{
	struct stat status;
	int error;

	error = fo_stat(item->file, &status, td->td_ucred);
	if (error != 0)
		return (error);
	item->conduit.device = status.st_dev;
	item->conduit.file = status.st_ino;
	if ((item->file->f_flag & FREAD) != 0)
		item->conduit.rights |= SHAI_CONDUIT_READ;
	if ((item->file->f_flag & FWRITE) != 0)
		item->conduit.rights |= SHAI_CONDUIT_WRITE;
	return (0);
}

static int
open_for_transfer(struct thread *td, const struct file *sent, struct item *item)
{
	u_int flags = sent->f_flag & (FREAD | FWRITE);

	if (sent->f_type != DTYPE_VNODE || sent->f_vnode == NULL ||
	    sent->f_vnode->v_type != VREG || flags == 0 ||
	    (sent->f_flag & (FEXEC | O_PATH)) != 0)
		return (EOPNOTSUPP);
	return (reopen_file(td, sent, flags, sent->f_cred, &item->file));
}

int
item_take(struct thread *td, int descriptor, struct item *item)
{
	struct filecaps held;
	struct file *sent;
	int error;

	memset(item, 0, sizeof(*item));
	error = get_with_capabilities(td, descriptor, &sent, &held);
	if (error != 0)
		return (error);
	error = check_limits(sent->f_flag, &held);
	filecaps_free(&held);
	if (error == 0)
		error = open_for_transfer(td, sent, item);
	fdrop(sent, td);
	if (error == 0)
		error = identify(td, item);
	return (error);
}

int
item_install(struct thread *td, const struct item *item, int *descriptor)
{
	struct filecaps limits;

	limits_of(item->file->f_flag, &limits);
	return (finstall(td, item->file, descriptor, O_CLOEXEC, &limits));
}

void
item_drop(struct thread *td, struct item *item)
{
	if (item->file != NULL)
		fdrop(item->file, td);
	item->file = NULL;
}

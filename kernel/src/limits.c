/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Limits and counts, which are sysctl variables below shai, and their locks.
 *
 * A use is charged before it exists and discharged after its end, so that a
 * count is never too low. A process is charged to the real user that it had
 * when it made its first context, a channel to the real user who made it.
 */
#include "context.h"

#include <sys/kernel.h>
#include <sys/priv.h>
#include <sys/sysctl.h>

MALLOC_DEFINE(M_SHAI, "shai", "light-weight contexts and descriptor channels");

struct mtx lwc_lock;
MTX_SYSINIT(lwc_lock, &lwc_lock, "lwc", MTX_DEF);

struct lwc_user {
	LIST_ENTRY(lwc_user) link;
	uid_t uid;
	u_int references; /* processes and channels */
	u_int contexts;
	u_int channels;
	u_int kibibytes;
	u_int files; /* in transfers */
};

static LIST_HEAD(, lwc_user) users = LIST_HEAD_INITIALIZER(users); /* (l) */
static u_int processes;                                            /* (l) */
static u_int contexts;                                             /* (l) */
static u_int channels;                                             /* (l) */
static u_int kibibytes;                                            /* (l) */
static u_int files;           /* (l) of ours, until their close has ended */
static u_int files_sent;      /* (l) in transfers, opened by the kernel */
static uint64_t redirections; /* atomic */
static uint64_t switches;     /* atomic */
static uint64_t withheld;     /* atomic */

static u_int contexts_per_process = 64;
static u_int contexts_per_user = 1024;
static u_int conduits_per_context = 65536;
static u_int channels_in_all = 16384;
static u_int channels_per_user = 1024;
static u_int kibibytes_per_user = 65536;
static u_int kibibytes_in_all; /* 0: not set */
static u_int files_per_user = 4096;
static u_int files_in_all; /* 0: not set */

SYSCTL_ROOT_NODE(OID_AUTO, shai, CTLFLAG_RD | CTLFLAG_MPSAFE, NULL, "Shai");
static SYSCTL_NODE(
    _shai, OID_AUTO, limit, CTLFLAG_RD | CTLFLAG_MPSAFE, NULL, "Limits");
static SYSCTL_NODE(_shai, OID_AUTO, count, CTLFLAG_RD | CTLFLAG_MPSAFE, NULL,
    "Numbers of objects");

SYSCTL_UINT(_shai_limit, OID_AUTO, contexts_per_process, CTLFLAG_RWTUN,
    &contexts_per_process, 0, "Contexts that a process may have");
SYSCTL_UINT(_shai_limit, OID_AUTO, contexts_per_user, CTLFLAG_RWTUN,
    &contexts_per_user, 0,
    "Contexts that all processes of a real user may have");
SYSCTL_UINT(_shai_limit, OID_AUTO, conduits_per_context, CTLFLAG_RWTUN,
    &conduits_per_context, 0, "Conduits that may be granted to a context");
SYSCTL_UINT(_shai_limit, OID_AUTO, channels, CTLFLAG_RWTUN, &channels_in_all, 0,
    "Descriptor channels that all users may have");
SYSCTL_UINT(_shai_limit, OID_AUTO, channels_per_user, CTLFLAG_RWTUN,
    &channels_per_user, 0, "Descriptor channels that a real user may have");
SYSCTL_UINT(_shai_limit, OID_AUTO, kibibytes_per_user, CTLFLAG_RWTUN,
    &kibibytes_per_user, 0,
    "Memory that contexts and channels of a real user may pin, in KiB");
SYSCTL_UINT(_shai_limit, OID_AUTO, kibibytes, CTLFLAG_RWTUN, &kibibytes_in_all,
    0, "Memory that contexts and channels of all users may pin, in KiB");
SYSCTL_UINT(_shai_limit, OID_AUTO, files_per_user, CTLFLAG_RWTUN,
    &files_per_user, 0, "Files that a real user may have in transfers");
SYSCTL_UINT(_shai_limit, OID_AUTO, files, CTLFLAG_RWTUN, &files_in_all, 0,
    "Files that all users may have in transfers");

/*
 * Counts tell of others: a sender, how many of its files were withheld; a jail,
 * what the other ones do. They are for the administrator of the machine.
 */
static int
read_count(SYSCTL_HANDLER_ARGS)
{
	int error;

	error = priv_check(req->td, PRIV_DRIVER);
	if (error != 0)
		return (error);
	return (SYSCTL_OUT(req, arg1, arg2));
}

#define COUNT(name, type, format, text)                                        \
	SYSCTL_PROC(_shai_count, OID_AUTO, name,                               \
	    type | CTLFLAG_RD | CTLFLAG_MPSAFE, &name, sizeof(name),           \
	    read_count, format, text)

COUNT(processes, CTLTYPE_UINT, "IU", "Processes with contexts");
COUNT(contexts, CTLTYPE_UINT, "IU", "Contexts");
COUNT(channels, CTLTYPE_UINT, "IU", "Descriptor channels");
COUNT(kibibytes, CTLTYPE_UINT, "IU",
    "Memory that contexts and channels pin, in KiB");
COUNT(files, CTLTYPE_UINT, "IU",
    "Open files: descriptors of contexts, also of dead ones, and ends of "
    "channels");
COUNT(files_sent, CTLTYPE_UINT, "IU", "Files in transfers");
COUNT(redirections, CTLTYPE_U64, "QU",
    "System calls redirected to a monitor since the module was loaded");
COUNT(switches, CTLTYPE_U64, "QU", "Switches since the module was loaded");
COUNT(withheld, CTLTYPE_U64, "QU",
    "Descriptors for which the receiver had no capability");

/*
 * A process of root can become any user, also in a jail, so the users' limits
 * do not bound what a jail takes.
 */
void
lwc_limits_init(void)
{
	if (kibibytes_in_all == 0)
		kibibytes_in_all = MIN(~0u, ptoa((uint64_t)physmem) / 8 / 1024);
	if (files_in_all == 0)
		files_in_all = maxfiles / 8;
}

static struct lwc_user *
find_user(uid_t uid)
{
	struct lwc_user *user;

	mtx_assert(&lwc_lock, MA_OWNED);
	LIST_FOREACH(user, &users, link) {
		if (user->uid == uid)
			return (user);
	}
	return (NULL);
}

/* Returns the user with a reference. */
static struct lwc_user *
hold_user(uid_t uid)
{
	struct lwc_user *fresh, *user;

	fresh = malloc(sizeof(*fresh), M_SHAI, M_WAITOK | M_ZERO);
	fresh->uid = uid;
	mtx_lock(&lwc_lock);
	user = find_user(uid);
	if (user == NULL) {
		user = fresh;
		fresh = NULL;
		LIST_INSERT_HEAD(&users, user, link);
	}
	user->references++;
	mtx_unlock(&lwc_lock);
	free(fresh, M_SHAI);
	return (user);
}

static void
release_user(struct lwc_user *user)
{
	mtx_lock(&lwc_lock);
	if (--user->references == 0)
		LIST_REMOVE(user, link);
	else
		user = NULL;
	mtx_unlock(&lwc_lock);
	free(user, M_SHAI);
}

void
lwc_charge_process(struct lwc_process *process, uid_t uid)
{
	process->user = hold_user(uid);
	mtx_lock(&lwc_lock);
	processes++;
	mtx_unlock(&lwc_lock);
}

void
lwc_discharge_process(struct lwc_process *process)
{
	mtx_lock(&lwc_lock);
	processes--;
	mtx_unlock(&lwc_lock);
	release_user(process->user);
	process->user = NULL;
}

static void
set_charge(struct lwc_user *user, u_int *charged, u_int amount)
{
	mtx_assert(&lwc_lock, MA_OWNED);
	user->kibibytes += amount - *charged;
	kibibytes += amount - *charged;
	*charged = amount;
}

/*
 * Replaces what is charged to a user for something: *charged becomes the new
 * amount. Less is always possible.
 */
int
lwc_charge_memory(struct lwc_user *user, u_int *charged, u_int amount)
{
	int error = 0;

	if (amount == *charged)
		return (0);
	mtx_lock(&lwc_lock);
	if (amount > *charged &&
	    (user->kibibytes - *charged + amount > kibibytes_per_user ||
		kibibytes - *charged + amount > kibibytes_in_all))
		error = EAGAIN;
	else
		set_charge(user, charged, amount);
	mtx_unlock(&lwc_lock);
	return (error);
}

/* The same for what is there already: the limits may be exceeded. */
void
lwc_charge_present(struct lwc_user *user, u_int *charged, u_int amount)
{
	mtx_lock(&lwc_lock);
	set_charge(user, charged, amount);
	mtx_unlock(&lwc_lock);
}

/* Reports whether a user, or all together, have more than the limits allow. */
bool
lwc_is_overcharged(const struct lwc_user *user)
{
	bool exceeded;

	mtx_lock(&lwc_lock);
	exceeded = user->kibibytes > kibibytes_per_user ||
		   kibibytes > kibibytes_in_all;
	mtx_unlock(&lwc_lock);
	return (exceeded);
}

int
lwc_charge_context(struct lwc_process *process)
{
	int error = 0;

	mtx_lock(&lwc_lock);
	if (process->count >= contexts_per_process ||
	    process->user->contexts >= contexts_per_user) {
		error = EAGAIN;
	} else {
		process->count++;
		process->user->contexts++;
		contexts++;
	}
	mtx_unlock(&lwc_lock);
	return (error);
}

void
lwc_discharge_context(struct lwc_process *process)
{
	mtx_lock(&lwc_lock);
	process->count--;
	process->user->contexts--;
	contexts--;
	mtx_unlock(&lwc_lock);
}

bool
lwc_conduit_fits(const struct lwc_context *context)
{
	return (context->conduit_count < conduits_per_context);
}

bool
shai_in_use(void)
{
	bool used;

	mtx_lock(&lwc_lock);
	used = processes != 0 || contexts != 0 || channels != 0 || files != 0;
	mtx_unlock(&lwc_lock);
	return (used);
}

int
shai_charge_channel(uid_t uid, u_int amount, struct lwc_user **user)
{
	u_int charged = 0;
	int error;

	*user = hold_user(uid);
	error = lwc_charge_memory(*user, &charged, amount);
	mtx_lock(&lwc_lock);
	if (error == 0 && (channels >= channels_in_all ||
			      (*user)->channels >= channels_per_user))
		error = EAGAIN;
	if (error == 0) {
		channels++;
		(*user)->channels++;
	}
	mtx_unlock(&lwc_lock);
	if (error != 0) {
		(void)lwc_charge_memory(*user, &charged, 0);
		release_user(*user);
	}
	return (error);
}

void
shai_discharge_channel(struct lwc_user *user, u_int amount)
{
	(void)lwc_charge_memory(user, &amount, 0);
	mtx_lock(&lwc_lock);
	channels--;
	user->channels--;
	mtx_unlock(&lwc_lock);
	release_user(user);
}

/* Charges files that the kernel opens for a transfer; EAGAIN at a limit. */
int
shai_charge_files(struct lwc_user *user, u_int number)
{
	int error = 0;

	mtx_lock(&lwc_lock);
	if (user->files + number > files_per_user ||
	    files_sent + number > files_in_all) {
		error = EAGAIN;
	} else {
		user->files += number;
		files_sent += number;
	}
	mtx_unlock(&lwc_lock);
	return (error);
}

void
shai_discharge_files(struct lwc_user *user, u_int number)
{
	mtx_lock(&lwc_lock);
	user->files -= number;
	files_sent -= number;
	mtx_unlock(&lwc_lock);
}

void
shai_count_file(int change)
{
	mtx_lock(&lwc_lock);
	files += change;
	mtx_unlock(&lwc_lock);
}

void
shai_count_redirection(void)
{
	atomic_add_64(&redirections, 1);
}

void
shai_count_switch(void)
{
	atomic_add_64(&switches, 1);
}

void
shai_count_withheld(u_int number)
{
	atomic_add_64(&withheld, number);
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Limits and counts, which are sysctl variables below shai, and their locks.
 *
 * A use is charged before it exists and discharged after its end, so that a count is
 * never too low. A process is charged to the real user that it had when it made its
 * first context.
 */
#include "context.h"

#include <sys/kernel.h>
#include <sys/sysctl.h>

MALLOC_DEFINE(M_SHAI, "shai", "light-weight contexts and descriptor channels");

struct mtx lwc_lock;
MTX_SYSINIT(lwc_lock, &lwc_lock, "lwc", MTX_DEF);

struct lwc_user {
	LIST_ENTRY(lwc_user) link;
	uid_t uid;
	u_int processes;
	u_int contexts;
};

static LIST_HEAD(, lwc_user) users = LIST_HEAD_INITIALIZER(users); /* (l) */
static u_int processes;                                            /* (l) */
static u_int contexts;                                             /* (l) */
static u_int channels;                                             /* (l) */
static u_int descriptors;     /* (l) of contexts, including dead ones */
static uint64_t redirections; /* atomic */
static uint64_t switches;     /* atomic */
static uint64_t withheld;     /* atomic */

static u_int contexts_per_process = 64;
static u_int contexts_per_user = 1024;
static u_int conduits_per_context = 65536;

SYSCTL_ROOT_NODE(OID_AUTO, shai, CTLFLAG_RD | CTLFLAG_MPSAFE, NULL, "Shai");
static SYSCTL_NODE(_shai, OID_AUTO, limit, CTLFLAG_RD | CTLFLAG_MPSAFE, NULL, "Limits");
static SYSCTL_NODE(_shai, OID_AUTO, count, CTLFLAG_RD | CTLFLAG_MPSAFE, NULL, "Numbers of objects");

SYSCTL_UINT(_shai_limit, OID_AUTO, contexts_per_process, CTLFLAG_RWTUN, &contexts_per_process, 0,
    "Contexts that a process may have");
SYSCTL_UINT(_shai_limit, OID_AUTO, contexts_per_user, CTLFLAG_RWTUN, &contexts_per_user, 0,
    "Contexts that all processes of a real user may have");
SYSCTL_UINT(_shai_limit, OID_AUTO, conduits_per_context, CTLFLAG_RWTUN, &conduits_per_context, 0,
    "Conduits that may be granted to a context");
SYSCTL_UINT(_shai_count, OID_AUTO, processes, CTLFLAG_RD, &processes, 0, "Processes with contexts");
SYSCTL_UINT(_shai_count, OID_AUTO, contexts, CTLFLAG_RD, &contexts, 0, "Contexts");
SYSCTL_UINT(_shai_count, OID_AUTO, channels, CTLFLAG_RD, &channels, 0, "Descriptor channels");
SYSCTL_UINT(_shai_count, OID_AUTO, descriptors, CTLFLAG_RD, &descriptors, 0,
    "Open descriptors of contexts, including dead ones");
SYSCTL_U64(_shai_count, OID_AUTO, redirections, CTLFLAG_RD, &redirections, 0,
    "System calls redirected to a monitor since the module was loaded");
SYSCTL_U64(_shai_count, OID_AUTO, switches, CTLFLAG_RD, &switches, 0,
    "Switches since the module was loaded");
SYSCTL_U64(_shai_count, OID_AUTO, withheld, CTLFLAG_RD, &withheld, 0,
    "Descriptors for which the receiver had no capability");

static struct lwc_user *
find_user(uid_t uid)
{
	struct lwc_user *user;

	mtx_assert(&lwc_lock, MA_OWNED);
	LIST_FOREACH(user, &users, link)
	if (user->uid == uid)
		return (user);
	return (NULL);
}

void
lwc_charge_process(struct lwc_process *process, uid_t uid)
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
	user->processes++;
	processes++;
	process->user = user;
	mtx_unlock(&lwc_lock);
	free(fresh, M_SHAI);
}

void
lwc_discharge_process(struct lwc_process *process)
{
	struct lwc_user *user = process->user;

	mtx_lock(&lwc_lock);
	processes--;
	if (--user->processes == 0)
		LIST_REMOVE(user, link);
	else
		user = NULL;
	mtx_unlock(&lwc_lock);
	process->user = NULL;
	free(user, M_SHAI);
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

int
lwc_charge_conduit(struct lwc_context *context)
{
	if (context->conduit_count >= conduits_per_context)
		return (EAGAIN);
	context->conduit_count++;
	return (0);
}

bool
shai_in_use(void)
{
	bool used;

	mtx_lock(&lwc_lock);
	used = processes != 0 || contexts != 0 || channels != 0 || descriptors != 0;
	mtx_unlock(&lwc_lock);
	return (used);
}

void
shai_count_channel(int change)
{
	mtx_lock(&lwc_lock);
	channels += change;
	mtx_unlock(&lwc_lock);
}

void
shai_count_descriptor(int change)
{
	mtx_lock(&lwc_lock);
	descriptors += change;
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

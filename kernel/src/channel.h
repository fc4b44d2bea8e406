/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The structure of a channel, for its file type (channel.c) and its calls
 * (transfer.c).
 */
#ifndef SHAI_CHANNEL_H
#define SHAI_CHANNEL_H

#include "context.h"

#include <sys/event.h>
#include <sys/selinfo.h>

#include "item.h"

#define CHANNEL_QUEUE_MAX 16 /* transfers in flight */

struct transfer {
	STAILQ_ENTRY(transfer) link;
	struct lwc_user *user; /* who is charged for it; NULL: nobody yet */
	u_int kibibytes;
	u_int files; /* charged */
	u_int count;
	struct item items[];
};

struct channel {
	struct mtx mutex;
	STAILQ_HEAD(, transfer) queue; /* (c) */
	u_int length;                  /* (c) */
	u_int ends;           /* (c) whose close has not come to its end */
	bool receiver_closed; /* (c) */
	bool sender_closed;   /* (c) */
	struct selinfo readable;
	struct selinfo writable;
	struct lwc_user
	    *user; /* constant: who is charged for it and for its transfers */
};

extern const struct fileops channel_receiver;
extern const struct fileops channel_sender;

/* Makes a channel, charged to a user. Fails with EAGAIN at a limit. */
int channel_new(uid_t uid, struct channel **out);

/* Frees a channel of which both ends are closed. */
void channel_free(struct channel *channel);

/* Frees a transfer and the files that it still holds. No locks held. */
void channel_free_transfer(struct transfer *transfer, struct thread *td);

/* Wakes all threads that wait for, poll or watch one side. The channel is
 * locked. */
void channel_wake(struct channel *channel, struct selinfo *which);

#endif

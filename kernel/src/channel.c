/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Descriptor channels: a file type that passes descriptors of regular files
 * from one end to the other, and nothing else. Reading and writing are refused.
 *
 * The receiver check. A descriptor is delivered only if the receiving context
 * has been granted its conduit (device and file number) with the rights that it
 * was opened with. Other descriptors are dropped and counted. Neither end is
 * told which ones or how many. A process without contexts has been granted
 * nothing.
 *
 * Only regular files can be sent, so there are no cycles of channels in flight,
 * and no garbage collection is needed.
 *
 * Locking: (c) the channel's mutex. Files are closed without it.
 * Lifetime: a channel is freed when both ends are closed. A transfer in flight
 * belongs to the queue; it is freed with its files when the receiving end is
 * closed.
 */
#include "context.h"

#include <sys/capsicum.h>
#include <sys/event.h>
#include <sys/fcntl.h>
#include <sys/filio.h>
#include <sys/poll.h>
#include <sys/selinfo.h>
#include <sys/stat.h>
#include <sys/user.h>

#include "channel.h"

#define CHANNEL_KIBIBYTES howmany(sizeof(struct channel), 1024)

int
channel_new(uid_t uid, struct channel **out)
{
	struct channel *channel;
	struct lwc_user *user;
	int error;

	error = shai_charge_channel(uid, CHANNEL_KIBIBYTES, &user);
	if (error != 0)
		return (error);
	channel = malloc(sizeof(*channel), M_SHAI, M_WAITOK | M_ZERO);
	channel->user = user;
	channel->ends = 2;
	mtx_init(&channel->mutex, "shai channel", NULL, MTX_DEF);
	STAILQ_INIT(&channel->queue);
	knlist_init_mtx(&channel->readable.si_note, &channel->mutex);
	knlist_init_mtx(&channel->writable.si_note, &channel->mutex);
	*out = channel;
	return (0);
}

void
channel_free(struct channel *channel)
{
	knlist_destroy(&channel->readable.si_note);
	knlist_destroy(&channel->writable.si_note);
	mtx_destroy(&channel->mutex);
	shai_discharge_channel(channel->user, CHANNEL_KIBIBYTES);
	free(channel, M_SHAI);
}

void
channel_free_transfer(struct transfer *transfer, struct thread *td)
{
	for (u_int i = 0; i < transfer->count; i++)
		item_drop(td, &transfer->items[i]);
	if (transfer->user != NULL) {
		(void)lwc_charge_memory(
		    transfer->user, &transfer->kibibytes, 0);
		shai_discharge_files(transfer->user, transfer->files);
	}
	free(transfer, M_SHAI);
}

void
channel_wake(struct channel *channel, struct selinfo *which)
{
	mtx_assert(&channel->mutex, MA_OWNED);
	wakeup(which);
	selwakeup(which);
	KNOTE_LOCKED(&which->si_note, 0);
}

/*
 * Handles the close of an end. The second close that comes to its end frees the
 * channel: what was in it is charged to its user.
 */
static void
end_closed(struct channel *channel, bool receiver, struct thread *td)
{
	STAILQ_HEAD(, transfer) dropped = STAILQ_HEAD_INITIALIZER(dropped);
	struct transfer *transfer;
	bool last;

	mtx_lock(&channel->mutex);
	if (receiver) {
		channel->receiver_closed = true;
		STAILQ_CONCAT(&dropped, &channel->queue);
		channel->length = 0;
		channel_wake(channel, &channel->writable);
	} else {
		channel->sender_closed = true;
		channel_wake(channel, &channel->readable);
	}
	mtx_unlock(&channel->mutex);
	while ((transfer = STAILQ_FIRST(&dropped)) != NULL) {
		STAILQ_REMOVE_HEAD(&dropped, link);
		channel_free_transfer(transfer, td);
	}
	mtx_lock(&channel->mutex);
	last = --channel->ends == 0;
	mtx_unlock(&channel->mutex);
	if (!last)
		return;
	seldrain(&channel->readable);
	seldrain(&channel->writable);
	channel_free(channel);
}

static int
receiver_close(struct file *fp, struct thread *td)
{
	end_closed(fp->f_data, true, td);
	shai_count_file(-1); /* at last: the module can be unloaded now */
	return (0);
}

static int
sender_close(struct file *fp, struct thread *td)
{
	end_closed(fp->f_data, false, td);
	shai_count_file(-1);
	return (0);
}

static bool
has_input(const struct channel *channel)
{
	return (!STAILQ_EMPTY(&channel->queue) || channel->sender_closed);
}

static bool
has_room(const struct channel *channel)
{
	return (
	    channel->length < CHANNEL_QUEUE_MAX || channel->receiver_closed);
}

static int
receiver_poll(
    struct file *fp, int events, struct ucred *credentials, struct thread *td)
{
	struct channel *channel = fp->f_data;
	int ready = 0;

	(void)credentials;
	mtx_lock(&channel->mutex);
	if (has_input(channel))
		ready = events & (POLLIN | POLLRDNORM);
	if (channel->sender_closed && STAILQ_EMPTY(&channel->queue))
		ready |= POLLHUP;
	if (ready == 0)
		selrecord(td, &channel->readable);
	mtx_unlock(&channel->mutex);
	return (ready);
}

static int
sender_poll(
    struct file *fp, int events, struct ucred *credentials, struct thread *td)
{
	struct channel *channel = fp->f_data;
	int ready = 0;

	(void)credentials;
	mtx_lock(&channel->mutex);
	if (channel->receiver_closed)
		ready = POLLHUP;
	else if (has_room(channel))
		ready = events & (POLLOUT | POLLWRNORM);
	if (ready == 0)
		selrecord(td, &channel->writable);
	mtx_unlock(&channel->mutex);
	return (ready);
}

static void
detach_receiver(struct knote *kn)
{
	struct channel *channel = kn->kn_hook;

	knlist_remove(&channel->readable.si_note, kn, 0);
}

static int
event_receiver(struct knote *kn, long hint)
{
	struct channel *channel = kn->kn_hook;

	(void)hint;
	mtx_assert(&channel->mutex, MA_OWNED);
	kn->kn_data =
	    has_input(channel); /* not how many: that would be a message */
	if (channel->sender_closed)
		kn->kn_flags |= EV_EOF;
	return (has_input(channel));
}

static void
detach_sender(struct knote *kn)
{
	struct channel *channel = kn->kn_hook;

	knlist_remove(&channel->writable.si_note, kn, 0);
}

static int
event_sender(struct knote *kn, long hint)
{
	struct channel *channel = kn->kn_hook;

	(void)hint;
	mtx_assert(&channel->mutex, MA_OWNED);
	kn->kn_data = has_room(channel);
	if (channel->receiver_closed)
		kn->kn_flags |= EV_EOF;
	return (has_room(channel));
}

static struct filterops receiver_filter = {
    .f_isfd = 1,
    .f_detach = detach_receiver,
    .f_event = event_receiver,
};

static struct filterops sender_filter = {
    .f_isfd = 1,
    .f_detach = detach_sender,
    .f_event = event_sender,
};

static int
receiver_kqfilter(struct file *fp, struct knote *kn)
{
	struct channel *channel = fp->f_data;

	if (kn->kn_filter != EVFILT_READ)
		return (EINVAL);
	kn->kn_fop = &receiver_filter;
	kn->kn_hook = channel;
	knlist_add(&channel->readable.si_note, kn, 0);
	return (0);
}

static int
sender_kqfilter(struct file *fp, struct knote *kn)
{
	struct channel *channel = fp->f_data;

	if (kn->kn_filter != EVFILT_WRITE)
		return (EINVAL);
	kn->kn_fop = &sender_filter;
	kn->kn_hook = channel;
	knlist_add(&channel->writable.si_note, kn, 0);
	return (0);
}

static int
refuse_data(struct file *fp, struct uio *uio, struct ucred *credentials,
    int flags, struct thread *td)
{
	(void)fp, (void)uio, (void)credentials, (void)flags, (void)td;
	return (EOPNOTSUPP);
}

/* Supports O_NONBLOCK only, which the file itself stores. */
static int
channel_ioctl(struct file *fp, u_long command, void *data,
    struct ucred *credentials, struct thread *td)
{
	(void)fp, (void)data, (void)credentials, (void)td;
	return (command == FIONBIO || command == FIOASYNC ? 0 : ENOTTY);
}

static int
channel_stat(struct file *fp, struct stat *sb, struct ucred *credentials)
{
	(void)fp, (void)credentials;
	memset(sb, 0, sizeof(*sb));
	sb->st_mode = S_IRUSR | S_IWUSR;
	return (0);
}

static int
channel_fill_kinfo(
    struct file *fp, struct kinfo_file *kif, struct filedesc *fdp)
{
	(void)fp, (void)fdp;
	kif->kf_type = KF_TYPE_DEV;
	return (0);
}

#define CHANNEL_OPERATIONS                                                     \
	.fo_read = refuse_data, .fo_write = refuse_data,                       \
	.fo_truncate = invfo_truncate, .fo_ioctl = channel_ioctl,              \
	.fo_stat = channel_stat, .fo_chmod = invfo_chmod,                      \
	.fo_chown = invfo_chown, .fo_sendfile = invfo_sendfile,                \
	.fo_fill_kinfo = channel_fill_kinfo, .fo_flags = DFLAG_PASSABLE

const struct fileops channel_receiver = {
    CHANNEL_OPERATIONS,
    .fo_poll = receiver_poll,
    .fo_kqfilter = receiver_kqfilter,
    .fo_close = receiver_close,
};

const struct fileops channel_sender = {
    CHANNEL_OPERATIONS,
    .fo_poll = sender_poll,
    .fo_kqfilter = sender_kqfilter,
    .fo_close = sender_close,
};

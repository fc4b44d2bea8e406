/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The calls on descriptor channels: making one, sending, and receiving.
 */
#include "channel.h"

#include <sys/capsicum.h>
#include <sys/fcntl.h>
#include <sys/syscallsubr.h>

#include "arguments.h"

/* Makes the two files, without operations. */
static int
make_ends(struct thread *td, struct file **receiver, struct file **sender,
    int ends[2])
{
	int error;

	error = falloc(td, receiver, &ends[0], O_CLOEXEC);
	if (error != 0)
		return (error);
	error = falloc(td, sender, &ends[1], O_CLOEXEC);
	if (error != 0) {
		fdclose(td, *receiver, ends[0]);
		fdrop(*receiver, td);
	}
	return (error);
}

int
sys_shai_channel(struct thread *td, struct shai_channel_args *arguments)
{
	struct channel *channel;
	struct file *receiver, *sender;
	int ends[2], error;

	error = channel_new(td->td_ucred->cr_ruid, &channel);
	if (error != 0)
		return (error);
	error = make_ends(td, &receiver, &sender, ends);
	if (error != 0) {
		channel_free(channel);
		return (error);
	}
	shai_count_file(2);
	finit(receiver, FREAD, DTYPE_DEV, channel,
	    __DECONST(struct fileops *, &channel_receiver));
	finit(sender, FWRITE, DTYPE_DEV, channel,
	    __DECONST(struct fileops *, &channel_sender));
	error = copyout(ends, arguments->ends, sizeof(ends));
	if (error != 0) {
		fdclose(td, receiver, ends[0]);
		fdclose(td, sender, ends[1]);
	}
	fdrop(receiver, td);
	fdrop(sender, td);
	return (error);
}

/* Gets the end of a channel from its descriptor. The caller drops *file. */
static int
get_end(struct thread *td, int descriptor, const struct fileops *end,
    struct file **file)
{
	int error;

	error = fget(td, descriptor,
	    end == &channel_sender ? &cap_write_rights : &cap_read_rights,
	    file);
	if (error != 0)
		return (error);
	if ((*file)->f_ops == end)
		return (0);
	error = (*file)->f_ops == &channel_sender ||
			(*file)->f_ops == &channel_receiver
		    ? EBADF
		    : EINVAL;
	fdrop(*file, td);
	return (error);
}

/* Charges a transfer to the channel's user until it is freed. */
static int
charge_transfer(struct lwc_user *user, struct transfer *transfer, u_int count)
{
	size_t bytes = sizeof(*transfer) + count * (sizeof(transfer->items[0]) +
						       sizeof(struct file));
	int error;

	transfer->user = user;
	error =
	    lwc_charge_memory(user, &transfer->kibibytes, howmany(bytes, 1024));
	if (error == 0)
		error = shai_charge_files(user, count);
	if (error == 0)
		transfer->files = count;
	return (error);
}

/* Makes a transfer, whose files are opened anew, and so charged before. */
static int
make_transfer(struct thread *td, const struct shai_send_args *arguments,
    struct lwc_user *user, struct transfer **out)
{
	int descriptors[SHAI_TRANSFER_MAX];
	struct transfer *transfer;
	u_int count = arguments->count;
	int error;

	error = copyin(arguments->descriptors, descriptors,
	    count * sizeof(descriptors[0]));
	if (error != 0)
		return (error);
	transfer =
	    malloc(sizeof(*transfer) + count * sizeof(transfer->items[0]),
		M_SHAI, M_WAITOK | M_ZERO);
	error = charge_transfer(user, transfer, count);
	for (u_int i = 0; i < count && error == 0; i++) {
		transfer->count = i + 1;
		error = item_take(td, descriptors[i], &transfer->items[i]);
	}
	if (error != 0) {
		channel_free_transfer(transfer, td);
		return (error);
	}
	*out = transfer;
	return (0);
}

/*
 * Appends a transfer, and waits for room. After a failure the caller keeps the
 * transfer.
 */
static int
enqueue(struct channel *channel, struct transfer *transfer, bool wait)
{
	int error = 0;

	mtx_lock(&channel->mutex);
	while (!channel->receiver_closed &&
	       channel->length >= CHANNEL_QUEUE_MAX && error == 0)
		error = wait ? mtx_sleep(&channel->writable, &channel->mutex,
				   PCATCH | PSOCK, "shaisend", 0)
			     : EAGAIN;
	if (error == 0 && channel->receiver_closed)
		error = EPIPE;
	if (error == 0) {
		STAILQ_INSERT_TAIL(&channel->queue, transfer, link);
		channel->length++;
		channel_wake(channel, &channel->readable);
	}
	mtx_unlock(&channel->mutex);
	return (error);
}

int
sys_shai_send(struct thread *td, struct shai_send_args *arguments)
{
	struct transfer *transfer;
	struct file *end;
	int error;

	/* Not an empty one: its arrival would be a message. */
	if (arguments->count < 1 || arguments->count > SHAI_TRANSFER_MAX)
		return (EINVAL);
	error = get_end(td, arguments->channel, &channel_sender, &end);
	if (error != 0)
		return (error);
	error = make_transfer(
	    td, arguments, ((struct channel *)end->f_data)->user, &transfer);
	if (error == 0) {
		error = enqueue(
		    end->f_data, transfer, (end->f_flag & FNONBLOCK) == 0);
		if (error != 0)
			channel_free_transfer(transfer, td);
	}
	fdrop(end, td);
	return (error);
}

/* Reports whether the receiver may have a file. */
static bool
is_covered(struct conduit_tree *granted, const struct item *item)
{
	const struct shai_conduit *conduit = &item->conduit;

	return (conduits_cover(
	    granted, conduit->device, conduit->file, conduit->rights));
}

static u_int
count_covered(struct conduit_tree *granted, const struct transfer *transfer)
{
	u_int covered = 0;

	for (u_int i = 0; i < transfer->count; i++)
		covered += is_covered(granted, &transfer->items[i]);
	return (covered);
}

/* Waits for a transfer. Returns ENOTCONN if none can come any more. */
static int
wait_for_transfer(struct channel *channel, bool wait)
{
	int error = 0;

	mtx_assert(&channel->mutex, MA_OWNED);
	while (STAILQ_EMPTY(&channel->queue) && error == 0) {
		if (channel->sender_closed)
			error = ENOTCONN;
		else if (!wait)
			error = EAGAIN;
		else
			error = mtx_sleep(&channel->readable, &channel->mutex,
			    PCATCH | PSOCK, "shairecv", 0);
	}
	return (error);
}

/*
 * Takes the oldest transfer, and says how many of its files the receiver may
 * have. If they are more than there is room for, the transfer stays (EMSGSIZE).
 */
static int
dequeue(struct channel *channel, struct conduit_tree *granted, u_int room,
    bool wait, struct transfer **out, u_int *covered)
{
	struct transfer *transfer = NULL;
	int error;

	mtx_lock(&channel->mutex);
	error = wait_for_transfer(channel, wait);
	if (error == 0) {
		transfer = STAILQ_FIRST(&channel->queue);
		*covered = count_covered(granted, transfer);
		if (*covered > room)
			error = EMSGSIZE;
	}
	if (error == 0) {
		STAILQ_REMOVE_HEAD(&channel->queue, link);
		channel->length--;
		channel_wake(channel, &channel->writable);
	}
	mtx_unlock(&channel->mutex);
	*out = transfer;
	return (error);
}

/*
 * Takes the oldest transfer of which the receiver may have something. It never
 * learns of the others, which are dropped: how many files a sender sends would
 * be a message to it.
 */
static int
dequeue_covered(struct thread *td, struct channel *channel,
    struct conduit_tree *granted, u_int room, bool wait, struct transfer **out)
{
	u_int covered;
	int error;

	for (;;) {
		error = dequeue(channel, granted, room, wait, out, &covered);
		if (error != 0)
			return (error);
		shai_count_withheld((*out)->count - covered);
		if (covered != 0)
			return (0);
		channel_free_transfer(*out, td);
	}
}

static void
close_all(struct thread *td, const int *descriptors, u_int count)
{
	for (u_int i = 0; i < count; i++)
		(void)kern_close(td, descriptors[i]);
}

/* Gives the receiver descriptors of what it may have: all of them, or after a
 * failure none. */
static int
deliver_transfer(struct thread *td, struct conduit_tree *granted,
    const struct transfer *transfer, int *user)
{
	int descriptors[SHAI_TRANSFER_MAX];
	u_int delivered = 0;
	int error = 0;

	for (u_int i = 0; i < transfer->count && error == 0; i++) {
		if (!is_covered(granted, &transfer->items[i]))
			continue;
		error = item_install(
		    td, &transfer->items[i], &descriptors[delivered]);
		if (error == 0)
			delivered++;
	}
	if (error == 0)
		error = copyout(
		    descriptors, user, delivered * sizeof(descriptors[0]));
	if (error != 0)
		close_all(td, descriptors, delivered);
	else
		td->td_retval[0] = delivered;
	return (error);
}

int
sys_shai_receive(struct thread *td, struct shai_receive_args *arguments)
{
	struct lwc_process *process = lwc_process_of(td->td_proc);
	struct conduit_tree *granted;
	struct transfer *transfer;
	struct file *end;
	int error;

	if (arguments->count < 1 || arguments->count > SHAI_TRANSFER_MAX)
		return (EINVAL);
	if (process == NULL)
		return (ESRCH);
	granted = &process->current->conduits;
	error = get_end(td, arguments->channel, &channel_receiver, &end);
	if (error != 0)
		return (error);
	error = dequeue_covered(td, end->f_data, granted, arguments->count,
	    (end->f_flag & FNONBLOCK) == 0, &transfer);
	if (error == 0) {
		error = deliver_transfer(
		    td, granted, transfer, arguments->descriptors);
		channel_free_transfer(transfer, td);
	}
	fdrop(end, td);
	return (error);
}

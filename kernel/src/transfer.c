/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The calls on descriptor channels: making one, sending, receiving, and granting
 * a context the conduits it may receive.
 */
#include "channel.h"

#include <sys/capsicum.h>
#include <sys/fcntl.h>
#include <sys/syscallsubr.h>
#include <sys/vnode.h>

#include "arguments.h"
#include "compat.h"

static struct channel *
channel_new(void)
{
	struct channel *channel = malloc(sizeof(*channel), M_SHAI, M_WAITOK | M_ZERO);

	mtx_init(&channel->mutex, "shai channel", NULL, MTX_DEF);
	STAILQ_INIT(&channel->queue);
	knlist_init_mtx(&channel->readable.si_note, &channel->mutex);
	knlist_init_mtx(&channel->writable.si_note, &channel->mutex);
	shai_count_channel(1);
	return (channel);
}

int
sys_shai_channel(struct thread *td, struct shai_channel_args *arguments)
{
	struct channel *channel;
	struct file *receiver, *sender;
	int ends[2], error;

	error = falloc(td, &receiver, &ends[0], O_CLOEXEC);
	if (error != 0)
		return (error);
	error = falloc(td, &sender, &ends[1], O_CLOEXEC);
	if (error != 0) {
		fdclose(td, receiver, ends[0]);
		fdrop(receiver, td);
		return (error);
	}
	channel = channel_new();
	finit(receiver, FREAD, DTYPE_DEV, channel, __DECONST(struct fileops *, &channel_receiver));
	finit(sender, FWRITE, DTYPE_DEV, channel, __DECONST(struct fileops *, &channel_sender));
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
get_end(struct thread *td, int descriptor, const struct fileops *end, struct file **file)
{
	int error;

	error = fget(
	    td, descriptor, end == &channel_sender ? &cap_write_rights : &cap_read_rights, file);
	if (error != 0)
		return (error);
	if ((*file)->f_ops == end)
		return (0);
	error = (*file)->f_ops == &channel_sender || (*file)->f_ops == &channel_receiver ? EBADF
											 : EINVAL;
	fdrop(*file, td);
	return (error);
}

/* Gets the conduit of an open file. */
static int
identify(struct thread *td, struct item *item)
{
	struct vnode *vp = item->file->f_vnode;
	struct vattr attributes;
	int error;

	if (item->file->f_type != DTYPE_VNODE || vp == NULL || vp->v_type != VREG)
		return (EOPNOTSUPP);
	error = vn_lock(vp, LK_SHARED);
	if (error != 0)
		return (error);
	error = VOP_GETATTR(vp, &attributes, td->td_ucred);
	VOP_UNLOCK(vp);
	item->device = attributes.va_fsid;
	item->number = attributes.va_fileid;
	return (error);
}

static int
take_item(struct thread *td, int descriptor, struct item *item)
{
	int error;

	error = get_with_capabilities(td, descriptor, &item->file, &item->capabilities);
	if (error != 0) {
		item->file = NULL;
		return (error);
	}
	return (identify(td, item));
}

static int
make_transfer(struct thread *td, const struct shai_send_args *arguments, struct transfer **out)
{
	int descriptors[SHAI_TRANSFER_MAX];
	struct transfer *transfer;
	u_int count = arguments->count;
	int error;

	error = copyin(arguments->descriptors, descriptors, count * sizeof(descriptors[0]));
	if (error != 0)
		return (error);
	transfer = malloc(
	    sizeof(*transfer) + count * sizeof(transfer->items[0]), M_SHAI, M_WAITOK | M_ZERO);
	transfer->tag = arguments->tag;
	transfer->count = count;
	for (u_int i = 0; i < count && error == 0; i++)
		error = take_item(td, descriptors[i], &transfer->items[i]);
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
	while (!channel->receiver_closed && channel->length >= CHANNEL_QUEUE_MAX && error == 0)
		error = wait ? mtx_sleep(&channel->writable, &channel->mutex, PCATCH | PSOCK,
				   "shaisend", 0)
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

	if (arguments->count < 0 || arguments->count > SHAI_TRANSFER_MAX)
		return (EINVAL);
	error = get_end(td, arguments->channel, &channel_sender, &end);
	if (error != 0)
		return (error);
	error = make_transfer(td, arguments, &transfer);
	if (error == 0) {
		error = enqueue(end->f_data, transfer, (end->f_flag & FNONBLOCK) == 0);
		if (error != 0)
			channel_free_transfer(transfer, td);
	}
	fdrop(end, td);
	return (error);
}

/*
 * Takes the oldest transfer, and waits for one. Returns ENOTCONN if none can come any
 * more.
 */
static int
dequeue(struct channel *channel, u_int room, bool wait, struct transfer **out)
{
	struct transfer *transfer;
	int error = 0;

	mtx_lock(&channel->mutex);
	while ((transfer = STAILQ_FIRST(&channel->queue)) == NULL && error == 0) {
		if (channel->sender_closed)
			error = ENOTCONN;
		else if (!wait)
			error = EAGAIN;
		else
			error = mtx_sleep(
			    &channel->readable, &channel->mutex, PCATCH | PSOCK, "shairecv", 0);
	}
	if (transfer != NULL && transfer->count > room)
		error = EMSGSIZE;
	else if (transfer != NULL) {
		error = 0;
		STAILQ_REMOVE_HEAD(&channel->queue, link);
		channel->length--;
		channel_wake(channel, &channel->writable);
	}
	mtx_unlock(&channel->mutex);
	*out = transfer;
	return (error);
}

static uint32_t
rights_of(const struct file *file)
{
	uint32_t rights = 0;

	if ((file->f_flag & (FREAD | FEXEC)) != 0)
		rights |= SHAI_CONDUIT_READ;
	if ((file->f_flag & FWRITE) != 0)
		rights |= SHAI_CONDUIT_WRITE;
	return (rights);
}

/*
 * Installs the descriptors that the receiver may have. After a failure none is
 * installed: those already in place are closed again.
 */
static int
install_covered(struct thread *td, struct conduit_tree *conduits, struct transfer *transfer,
    int *descriptors, struct shai_delivery *delivery)
{
	int error = 0;

	for (u_int i = 0; i < transfer->count && error == 0; i++) {
		struct item *item = &transfer->items[i];

		if (conduits == NULL ||
		    !conduits_cover(conduits, item->device, item->number, rights_of(item->file))) {
			delivery->withheld++;
			continue;
		}
		error = finstall(td, item->file, &descriptors[delivery->delivered], O_CLOEXEC,
		    &item->capabilities);
		if (error == 0)
			delivery->delivered++;
	}
	if (error != 0)
		for (u_int i = 0; i < delivery->delivered; i++)
			(void)kern_close(td, descriptors[i]);
	return (error);
}

static int
deliver_transfer(
    struct thread *td, struct transfer *transfer, const struct shai_receive_args *arguments)
{
	struct lwc_process *process = lwc_process_of(td->td_proc);
	struct shai_delivery delivery = {.tag = transfer->tag};
	int descriptors[SHAI_TRANSFER_MAX];
	int error;

	error = install_covered(td, process == NULL ? NULL : &process->current->conduits, transfer,
	    descriptors, &delivery);
	if (error != 0)
		return (error);
	shai_count_withheld(delivery.withheld);
	error = copyout(
	    descriptors, arguments->descriptors, delivery.delivered * sizeof(descriptors[0]));
	if (error == 0)
		error = copyout(&delivery, arguments->delivery, sizeof(delivery));
	if (error != 0)
		for (u_int i = 0; i < delivery.delivered; i++)
			(void)kern_close(td, descriptors[i]);
	return (error);
}

int
sys_shai_receive(struct thread *td, struct shai_receive_args *arguments)
{
	struct transfer *transfer;
	struct file *end;
	int error;

	if (arguments->count < 0 || arguments->count > SHAI_TRANSFER_MAX)
		return (EINVAL);
	error = get_end(td, arguments->channel, &channel_receiver, &end);
	if (error != 0)
		return (error);
	error = dequeue(end->f_data, arguments->count, (end->f_flag & FNONBLOCK) == 0, &transfer);
	if (error == 0) {
		error = deliver_transfer(td, transfer, arguments);
		channel_free_transfer(transfer, td);
	}
	fdrop(end, td);
	return (error);
}

/* Adds copies of the conduits. After a failure, those added before it stay. */
static int
grant(struct lwc_context *context, const struct shai_conduit *conduits, u_int count)
{
	int error = 0;

	for (u_int i = 0; i < count && error == 0; i++)
		error = rules_check_conduit(&conduits[i]);
	for (u_int i = 0; i < count && error == 0; i++) {
		struct conduit_node *node;

		error = lwc_charge_conduit(context);
		if (error != 0)
			break;
		node = malloc(sizeof(*node), M_SHAI, M_WAITOK);
		node->conduit = conduits[i];
		if (conduits_add(&context->conduits, node) != NULL) {
			context->conduit_count--;
			free(node, M_SHAI);
		}
	}
	return (error);
}

/*
 * Grants conduits. A context may grant them to itself only if nothing confines it:
 * outside of capability mode, and without a monitor.
 */
int
sys_shai_grant(struct thread *td, struct shai_grant_args *arguments)
{
	struct lwc_process *process;
	struct lwc_context *context;
	struct shai_conduit *conduits;
	struct file *file;
	int error;

	if (arguments->count < 1 || arguments->count > SHAI_GRANT_MAX)
		return (EINVAL);
	error = lwc_adopt(td, &process);
	if (error == 0)
		error = lwc_descriptor_get(
		    td, process, arguments->context, LWC_RIGHT_GRANT, &context, &file);
	if (error != 0)
		return (error);
	conduits = malloc(arguments->count * sizeof(*conduits), M_SHAI, M_WAITOK);
	error = copyin(arguments->conduits, conduits, arguments->count * sizeof(*conduits));
	if (error == 0 && context == process->current &&
	    (IN_CAPABILITY_MODE(td) || context->monitor != NULL))
		error = EPERM;
	if (error == 0)
		error = grant(context, conduits, arguments->count);
	free(conduits, M_SHAI);
	if (file != NULL)
		fdrop(file, td);
	return (error);
}

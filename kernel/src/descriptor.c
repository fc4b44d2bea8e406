/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Descriptors of contexts: a file type that only names a context and says what
 * may be done with it. Such a descriptor cannot be passed over sockets, and
 * children do not inherit it: a context means nothing outside its process.
 */
#include "context.h"

#include <sys/capsicum.h>
#include <sys/fcntl.h>
#include <sys/stat.h>
#include <sys/user.h>

static int
descriptor_close(struct file *fp, struct thread *td)
{
	struct lwc_reference *reference = fp->f_data;
	struct lwc_process *process;

	fp->f_data = NULL;
	lwc_release(reference->context);
	free(reference, M_SHAI);
	/* If another process drops the last reference, the work is left to the
	 * owner. */
	if (td != NULL && td == curthread) {
		process = lwc_process_of(td->td_proc);
		if (process != NULL && process->current != NULL)
			lwc_reap(td, process);
	}
	shai_count_file(-1); /* at last: the module can be unloaded now */
	return (0);
}

static int
descriptor_stat(struct file *fp, struct stat *sb, struct ucred *credentials)
{
	(void)fp, (void)credentials;
	memset(sb, 0, sizeof(*sb));
	sb->st_mode = S_IRUSR | S_IWUSR;
	return (0);
}

static int
descriptor_fill_kinfo(
    struct file *fp, struct kinfo_file *kif, struct filedesc *fdp)
{
	(void)fp, (void)fdp;
	kif->kf_type = KF_TYPE_DEV;
	return (0);
}

const struct fileops lwc_fileops = {
    .fo_read = invfo_rdwr,
    .fo_write = invfo_rdwr,
    .fo_truncate = invfo_truncate,
    .fo_ioctl = invfo_ioctl,
    .fo_poll = invfo_poll,
    .fo_kqfilter = invfo_kqfilter,
    .fo_stat = descriptor_stat,
    .fo_close = descriptor_close,
    .fo_chmod = invfo_chmod,
    .fo_chown = invfo_chown,
    .fo_sendfile = invfo_sendfile,
    .fo_fill_kinfo = descriptor_fill_kinfo,
    .fo_flags = 0,
};

/*
 * Makes a descriptor with all rights, close-on-exec. The descriptor holds the
 * context.
 */
int
lwc_descriptor_open(
    struct thread *td, struct lwc_context *context, int *descriptor)
{
	struct lwc_reference *reference;
	struct file *fp;
	int error;

	error = falloc_noinstall(td, &fp);
	if (error != 0)
		return (error);
	reference = malloc(sizeof(*reference), M_SHAI, M_WAITOK);
	reference->context = context;
	reference->rights = LWC_RIGHTS_ALL;
	lwc_hold(context);
	shai_count_file(1);
	finit(fp, FREAD | FWRITE, DTYPE_DEV, reference,
	    __DECONST(struct fileops *, &lwc_fileops));
	error = finstall(td, fp, descriptor, O_CLOEXEC, NULL);
	fdrop(fp, td);
	return (error);
}

/* Finds the context of LWC_SELF and LWC_CALLER. */
static int
get_relative(struct lwc_process *process, int descriptor, uint32_t rights,
    struct lwc_context **context)
{
	struct lwc_context *current = process->current;

	if (descriptor == LWC_SELF) {
		*context = current;
		return (0);
	}
	if (descriptor != LWC_CALLER)
		return (EBADF);
	if (current->caller == NULL)
		return (ESRCH);
	if ((rights & ~current->caller_rights) != 0)
		return (ENOTCAPABLE);
	*context = current->caller;
	return (0);
}

static int
get_by_descriptor(struct thread *td, struct lwc_process *process,
    int descriptor, uint32_t rights, struct lwc_target *target)
{
	struct lwc_reference *reference;
	struct file *fp;
	int error;

	error = fget(td, descriptor, &cap_no_rights, &fp);
	if (error != 0)
		return (error);
	if (fp->f_ops != &lwc_fileops) {
		fdrop(fp, td);
		return (EINVAL);
	}
	reference = fp->f_data;
	if (reference->context->process != process)
		error = ESRCH;
	else if ((rights & ~reference->rights) != 0)
		error = ENOTCAPABLE;
	if (error != 0) {
		fdrop(fp, td);
		return (error);
	}
	target->context = reference->context;
	target->file = fp;
	return (0);
}

/*
 * Finds the context that a number means, and holds it until lwc_target_put: the
 * call may close its last descriptor. It must be of this process and alive, and
 * the descriptor must have the rights. Fails with EBADF, EINVAL (not a
 * context), ESRCH (dead, or of another process) or ENOTCAPABLE.
 */
int
lwc_target_get(struct thread *td, struct lwc_process *process, int descriptor,
    uint32_t rights, struct lwc_target *target)
{
	int error;

	target->file = NULL;
	if (descriptor < 0)
		error =
		    get_relative(process, descriptor, rights, &target->context);
	else
		error =
		    get_by_descriptor(td, process, descriptor, rights, target);
	if (error == 0)
		lwc_hold(target->context);
	return (error);
}

/* Ends the call's use of a context, and discards it if nothing else holds it.
 */
void
lwc_target_put(
    struct thread *td, struct lwc_process *process, struct lwc_target *target)
{
	if (target->file != NULL)
		fdrop(target->file, td);
	lwc_release(target->context);
	lwc_reap(td, process);
}

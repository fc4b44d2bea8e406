/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Copies of an address space and of a descriptor table, for a new context.
 */
#include "context.h"

#include <sys/fcntl.h>
#include <sys/seqc.h>
#include <sys/syscallsubr.h>
#include <vm/pmap.h>
#include <vm/vm.h>
#include <vm/vm_extern.h>
#include <vm/vm_map.h>
#include <vm/vm_param.h>

#include "reopen.h"

/* The inheritance of a part of an address space, to be restored. */
struct inheritance {
	vm_offset_t start;
	vm_offset_t end;
	vm_inherit_t kind;
};

/* Records every entry's inheritance. Who shares the memory since before the
 * first context may change the map meanwhile: then it is its own inheritance
 * that is another one. */
static struct inheritance *
note_inheritance(vm_map_t map, u_int *count)
{
	struct inheritance *noted;
	vm_map_entry_t entry;
	u_int i = 0, room;

	vm_map_lock_read(map);
	room = map->nentries;
	vm_map_unlock_read(map);
	noted = malloc(MAX(room, 1) * sizeof(*noted), M_SHAI, M_WAITOK);
	vm_map_lock_read(map);
	VM_MAP_ENTRY_FOREACH(entry, map) {
		if (i == room)
			break;
		noted[i++] = (struct inheritance){
		    entry->start, entry->end, entry->inheritance};
	}
	vm_map_unlock_read(map);
	*count = i;
	return (noted);
}

static int
apply_ranges(vm_map_t map, const struct lwc_range *ranges, u_int count)
{
	static const vm_inherit_t kind[] = {
	    [LWC_COPY] = VM_INHERIT_COPY,
	    [LWC_SHARE] = VM_INHERIT_SHARE,
	    [LWC_OMIT] = VM_INHERIT_NONE,
	};

	for (u_int i = 0; i < count; i++) {
		vm_offset_t start = ranges[i].start;
		int result;

		result = vm_map_inherit(
		    map, start, start + ranges[i].length, kind[ranges[i].mode]);
		if (result != KERN_SUCCESS)
			return (vm_mmap_to_errno(result));
	}
	return (0);
}

/*
 * Restores the inheritance. Shared ranges keep INHERIT_SHARE, as after
 * minherit(2), so that later copies share them too: if a range was marked
 * copy-on-write later, the sharers would be separated unnoticed.
 */
static void
restore_inheritance(vm_map_t map, const struct inheritance *noted, u_int count,
    const struct lwc_range *ranges, u_int range_count)
{
	for (u_int i = 0; i < count; i++)
		(void)vm_map_inherit(
		    map, noted[i].start, noted[i].end, noted[i].kind);
	for (u_int i = 0; i < range_count; i++)
		if (ranges[i].mode == LWC_SHARE)
			(void)apply_ranges(map, &ranges[i], 1);
}

/*
 * Copies an address space as fork(2) would, except for the ranges. The kernel's
 * copying reads the inheritance of each entry, so the ranges are set as
 * inheritance for its duration. The ranges must have been checked.
 */
int
lwc_copy_memory(struct vmspace *from, const struct lwc_range *ranges,
    u_int count, struct vmspace **out)
{
	vm_map_t map = &from->vm_map;
	struct inheritance *noted = NULL;
	vm_ooffset_t charge = 0;
	u_int noted_count = 0;
	int error = 0;

	*out = NULL;
	if (from->vm_shm != NULL)
		return (
		    EBUSY); /* System V segments count attachments by process */
	if (count != 0) {
		noted = note_inheritance(map, &noted_count);
		error = apply_ranges(map, ranges, count);
	}
	if (error == 0) {
		*out = vmspace_fork(from, &charge);
		if (*out == NULL)
			error = ENOMEM;
	}
	if (count != 0) {
		restore_inheritance(
		    map, noted, noted_count, ranges, error == 0 ? count : 0);
		free(noted, M_SHAI);
	}
	if (error == 0 && !swap_reserve(charge)) {
		/* vmspace_free returns the charge, so it must be taken first.
		 */
		swap_reserve_force(charge);
		vmspace_free(*out);
		*out = NULL;
		error = ENOMEM;
	}
	return (error);
}

/*
 * Replaces a descriptor in the process's table by the same file, opened again.
 * Its limits and flags stay as they are: only the file is exchanged.
 */
static int
open_anew(struct thread *td, int descriptor)
{
	struct filedesc *files = td->td_proc->p_fd;
	struct filedescent *entry;
	struct file *fresh, *old;
	int error;

	error = fget(td, descriptor, &cap_no_rights, &old);
	if (error != 0)
		return (error);
	if ((old->f_flag & O_PATH) !=
	    0) { /* it only names the file, without an offset */
		fdrop(old, td);
		return (0);
	}
	error = reopen_file(td, old,
	    old->f_flag & (FREAD | FWRITE | FEXEC | O_APPEND | FNONBLOCK |
			      O_FSYNC | O_DIRECT),
	    td->td_ucred, &fresh);
	if (error == 0) {
		FILEDESC_XLOCK(files);
		entry = &files->fd_ofiles[descriptor];
		seqc_write_begin(&entry->fde_seqc);
		entry->fde_file = fresh;
		seqc_write_end(&entry->fde_seqc);
		FILEDESC_XUNLOCK(files);
		(void)closef(old, td); /* the table's reference */
	}
	fdrop(old, td);
	return (error);
}

/*
 * Puts the descriptor of a context, which the copied table lacks, into the
 * process's table at the same number, with the same open file.
 */
static int
share_context(struct thread *td, struct filedesc *from, int descriptor)
{
	struct filedesc *files = td->td_proc->p_fd;
	struct file *file;
	int error, number;

	FILEDESC_SLOCK(from);
	file = descriptor < from->fd_nfiles
		   ? from->fd_ofiles[descriptor].fde_file
		   : NULL;
	if (file == NULL || file->f_ops != &lwc_fileops || !fhold(file))
		file = NULL;
	FILEDESC_SUNLOCK(from);
	if (file == NULL)
		return (0);
	FILEDESC_XLOCK(files);
	if (descriptor < files->fd_nfiles &&
	    files->fd_ofiles[descriptor].fde_file != NULL) {
		FILEDESC_XUNLOCK(files);
		fdrop(file, td);
		return (0);
	}
	error = fdalloc(td, descriptor, &number);
	if (error == 0) {
		KASSERT(number == descriptor, ("lwc: a free number is not"));
		_finstall(files, file, number, O_CLOEXEC, NULL);
	}
	FILEDESC_XUNLOCK(files);
	if (error != 0)
		fdrop(file, td);
	return (error);
}

static int
apply_descriptors(struct thread *td, struct filedesc *from,
    const struct lwc_descriptors *descriptors)
{
	struct filedesc *files = td->td_proc->p_fd;
	int last, error = 0;

	if (descriptors->mode == LWC_OMIT) {
		error = kern_close_range(
		    td, 0, descriptors->first, descriptors->last);
		return (
		    error == EINVAL ? 0 : error); /* no descriptor that high */
	}
	last =
	    MIN(descriptors->last, MAX(files->fd_nfiles, from->fd_nfiles) - 1);
	for (int i = descriptors->first; i <= last && error == 0; i++) {
		if (descriptors->mode == LWC_SHARE)
			error = share_context(td, from, i);
		else
			error = open_anew(td, i);
		if (error == EBADF)
			error = 0;
	}
	return (error);
}

/*
 * Copies a descriptor table. Everything that fork(2) passes on is shared,
 * unless the list says otherwise; descriptors of contexts are shared only if
 * the list says LWC_SHARE. The copy is installed in the process during the
 * work, because closing and allocating act on the process's table.
 */
int
lwc_copy_files(struct thread *td, struct filedesc *from,
    const struct lwc_descriptors *descriptors, u_int count,
    struct filedesc **out)
{
	struct proc *p = td->td_proc;
	struct filedesc *copy, *kept;
	int error = 0;

	copy = fdcopy(from);
	/* The kernel's hint, below which it looks for no free number, is beyond
	 * those of contexts that lie beside each other: they would get others.
	 */
	copy->fd_freefile = 0;
	kept = lwc_install_files(p, copy);
	for (u_int i = 0; i < count && error == 0; i++)
		error = apply_descriptors(td, from, &descriptors[i]);
	(void)lwc_install_files(p, kept);
	if (error != 0) {
		lwc_free_files(td, copy);
		copy = NULL;
	}
	*out = copy;
	return (error);
}

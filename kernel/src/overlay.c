/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Overlays: a range of a suspended context's memory, mapped into the current
 * one. From then on both see the same pages, until either context is copied (a
 * copy gets pages of its own, see fork(2)). The mapping is never executable,
 * and no copy of the current context inherits it.
 */
#include "context.h"

#include <vm/pmap.h>
#include <vm/vm.h>
#include <vm/vm_extern.h>
#include <vm/vm_map.h>
#include <vm/vm_object.h>
#include <vm/vm_param.h>

#include "arguments.h"

/* The part of an overlay in one map entry. */
struct piece {
	vm_object_t object; /* referenced */
	vm_ooffset_t offset;
	vm_size_t length;
	vm_prot_t protection; /* of the entry, as far as it was looked up for */
};

/*
 * Allows memory of the process itself, and files that are only read; no
 * devices. Files of tmpfs and shared memory objects have swap, but only what is
 * anonymous is nobody else's.
 */
static bool
is_sharable(vm_object_t object, vm_prot_t protection)
{
	if ((object->flags & OBJ_FICTITIOUS) != 0)
		return (false);
	if ((object->flags & OBJ_ANON) != 0)
		return (true);
	return (
	    (object->type == OBJT_VNODE || (object->flags & OBJ_SWAP) != 0) &&
	    (protection & VM_PROT_WRITE) == 0);
}

/*
 * Finds the entry at an address. A writable private entry gets its own object
 * first: otherwise its owner's next write would make one, and the overlay would
 * keep the old object. A process that shares the memory since before its first
 * context can make the entry writable meanwhile: its object may still be that
 * of other processes then, so the overlay is not for writing.
 */
static int
find_piece(
    vm_map_t map, vm_offset_t address, vm_size_t left, struct piece *piece)
{
	vm_map_entry_t entry;
	vm_pindex_t index;
	vm_prot_t protection, wanted;
	boolean_t wired;
	bool sharable;
	int result;

	vm_map_lock_read(map);
	if (!vm_map_lookup_entry(map, address, &entry)) {
		vm_map_unlock_read(map);
		return (EFAULT);
	}
	wanted = VM_PROT_READ | (entry->protection & VM_PROT_WRITE);
	vm_map_unlock_read(map);
	result = vm_map_lookup(&map, address, wanted, &entry, &piece->object,
	    &index, &protection, &wired);
	if (result != KERN_SUCCESS)
		return (vm_mmap_to_errno(result));
	piece->protection = entry->protection & wanted;
	piece->offset = IDX_TO_OFF(index);
	piece->length = MIN(left, entry->end - address);
	sharable = is_sharable(piece->object, entry->protection);
	if (sharable)
		vm_object_reference(piece->object);
	vm_map_lookup_done(map, entry);
	return (sharable ? 0 : EOPNOTSUPP);
}

static int
map_piece(
    vm_map_t map, vm_offset_t here, const struct piece *piece, uint32_t flags)
{
	vm_prot_t protection = VM_PROT_READ;
	int result;

	if ((flags & LWC_OVERLAY_WRITE) != 0)
		protection |= piece->protection & VM_PROT_WRITE;
	result = vm_map_fixed(map, piece->object, piece->offset, here,
	    piece->length, protection, protection, MAP_CHECK_EXCL);
	if (result != KERN_SUCCESS) {
		vm_object_deallocate(piece->object);
		return (result == KERN_NO_SPACE ? EEXIST
						: vm_mmap_to_errno(result));
	}
	(void)vm_map_inherit(map, here, here + piece->length, VM_INHERIT_NONE);
	return (0);
}

static int
overlay(vm_map_t from, vm_map_t to, const struct lwc_overlay *wanted)
{
	vm_size_t done = 0;
	struct piece piece;
	int error = 0;

	while (done < wanted->length && error == 0) {
		error = find_piece(
		    from, wanted->start + done, wanted->length - done, &piece);
		if (error == 0)
			error = map_piece(
			    to, wanted->here + done, &piece, wanted->flags);
		if (error == 0)
			done += piece.length;
	}
	if (error != 0 && done != 0)
		(void)vm_map_remove(to, wanted->here, wanted->here + done);
	return (error);
}

int
sys_lwc_overlay(struct thread *td, struct lwc_overlay_args *arguments)
{
	struct lwc_process *process = lwc_process_of(td->td_proc);
	vm_map_t here = &td->td_proc->p_vmspace->vm_map;
	struct lwc_overlay wanted;
	struct lwc_target target;
	int error;

	if (process == NULL)
		return (ESRCH);
	error = copyin(arguments->overlay, &wanted, sizeof(wanted));
	if (error == 0)
		error = rules_check_overlay(
		    &wanted, vm_map_min(here), vm_map_max(here), PAGE_SIZE);
	if (error == 0)
		error = lwc_target_get(td, process, arguments->context,
		    LWC_RIGHT_OVERLAY, &target);
	if (error != 0)
		return (error);
	if (target.context == process->current)
		error = EBUSY;
	else
		error = overlay(
		    &target.context->resources.vmspace->vm_map, here, &wanted);
	lwc_target_put(td, process, &target);
	return (error);
}

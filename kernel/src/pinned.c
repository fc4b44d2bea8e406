/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory that a context keeps from being paged out while it is not current. A
 * process has one address space and one table at a time, and the system's
 * limits count those; what its other contexts have is charged to the user here.
 *
 * Counted are the structures, the registers, the entries of the map, the table
 * of descriptors with the lists of ioctl(2) requests that they are limited to,
 * the grants, and locked pages. Page tables are not: as those of processes,
 * they are bounded by the pages that are touched, of which each needs three at
 * most, and these are charged as swap. Ranges with protection keys are not
 * either: processes may have as many as they like.
 */
#include "context.h"

#include <vm/pmap.h>
#include <vm/vm.h>
#include <vm/vm_map.h>

#define KIBIBYTE 1024

static size_t
bytes_of_lists(const struct filedesc *files)
{
	const u_int width = NBBY * sizeof(NDSLOTTYPE);
	size_t requests = 0;

	for (u_int i = 0; i < howmany(files->fd_nfiles, width); i++)
		for (NDSLOTTYPE used = files->fd_map[i]; used != 0;
		     used &= used - 1) {
			const struct filedescent *entry =
			    &files->fd_ofiles[i * width + ffsl(used) - 1];

			requests += MAX(entry->fde_caps.fc_nioctls, 0);
		}
	return (requests * sizeof(u_long));
}

static u_int
kibibytes_of(const struct lwc_resources *resources)
{
	size_t bytes = sizeof(struct lwc_context) + lwc_machine_size() +
		       sizeof(struct vmspace) + sizeof(struct sigacts) +
		       sizeof(struct filedesc);

	bytes +=
	    resources->vmspace->vm_map.nentries * sizeof(struct vm_map_entry);
	bytes += resources->files->fd_nfiles * sizeof(struct filedescent);
	bytes += bytes_of_lists(resources->files);
	bytes += ptoa(pmap_wired_count(vmspace_pmap(resources->vmspace)));
	return (howmany(bytes, KIBIBYTE));
}

int
lwc_pin(struct lwc_process *process, struct lwc_context *context,
    const struct lwc_resources *resources)
{
	return (lwc_charge_memory(
	    process->user, &context->kibibytes, kibibytes_of(resources)));
}

/*
 * A call on behalf of a context may have locked pages of it, or enlarged its
 * table. That cannot be undone. While a user has too much, such calls are
 * refused, so it is one call at most by which the limit is exceeded.
 */
void
lwc_pin_present(struct lwc_process *process, struct lwc_context *context)
{
	lwc_charge_present(process->user, &context->kibibytes,
	    kibibytes_of(&context->resources));
}

int
lwc_charge_conduit(struct lwc_process *process, struct lwc_context *context)
{
	size_t bytes =
	    (context->conduit_count + 1) * sizeof(struct conduit_node);
	int error;

	if (!lwc_conduit_fits(context))
		return (EAGAIN);
	error = lwc_charge_memory(process->user, &context->conduit_kibibytes,
	    howmany(bytes, KIBIBYTE));
	if (error == 0)
		context->conduit_count++;
	return (error);
}

void
lwc_unpin(struct lwc_process *process, struct lwc_context *context)
{
	(void)lwc_charge_memory(process->user, &context->kibibytes, 0);
	(void)lwc_charge_memory(process->user, &context->conduit_kibibytes, 0);
}

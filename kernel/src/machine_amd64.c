/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Registers of a context on amd64: the trap frame, the bases of %fs and %gs, and the
 * whole extended state. All of it is exchanged: a redirected call returns to a
 * program that may keep values in vector registers across the instruction, and values
 * of one user's session must not be left in them for the next.
 */
#include "context.h"

#include <machine/cpufunc.h>
#include <machine/fpu.h>
#include <machine/frame.h>
#include <machine/md_var.h>
#include <machine/pcb.h>
#include <x86/x86_var.h>

struct lwc_machine {
	struct trapframe frame;
	register_t fsbase;
	register_t gsbase;
#if __FreeBSD_version >= 1500000
	register_t tlsbase;
#endif
	char extended[]; /* cpu_max_ext_state_size bytes */
};

size_t
lwc_machine_size(void)
{
	return (sizeof(struct lwc_machine) + cpu_max_ext_state_size);
}

struct lwc_machine *
lwc_machine_alloc(void)
{
	return (malloc(lwc_machine_size(), M_SHAI, M_WAITOK | M_ZERO));
}

void
lwc_machine_free(struct lwc_machine *machine)
{
	zfree(machine, M_SHAI);
}

void
lwc_machine_copy(struct lwc_machine *to, const struct lwc_machine *from)
{
	memcpy(to, from, lwc_machine_size());
}

void
lwc_machine_save(struct thread *td, struct lwc_machine *machine)
{
	struct pcb *pcb = td->td_pcb;

	machine->frame = *td->td_frame;
	update_pcb_bases(pcb);
	machine->fsbase = pcb->pcb_fsbase;
	machine->gsbase = pcb->pcb_gsbase;
#if __FreeBSD_version >= 1500000
	machine->tlsbase = pcb->pcb_tlsbase;
#endif
	/* Saves the processor's state into the control block, completely. */
	(void)fpugetregs(td);
	memcpy(machine->extended, get_pcb_user_save_td(td), cpu_max_ext_state_size);
}

void
lwc_machine_restore(struct thread *td, struct lwc_machine *machine)
{
	struct pcb *pcb = td->td_pcb;
	struct savefpu *legacy;
	char *extended;
	size_t size;
	int error __diagused;

	*td->td_frame = machine->frame;
	/*
	 * The frame may come from a trap or from a call: return by iret, with every
	 * register.
	 */
	set_pcb_flags(pcb, PCB_FULL_IRET);
	pcb->pcb_fsbase = machine->fsbase;
	pcb->pcb_gsbase = machine->gsbase;
#if __FreeBSD_version >= 1500000
	pcb->pcb_tlsbase = machine->tlsbase;
#endif
	legacy = (struct savefpu *)(void *)machine->extended;
	extended = machine->extended + sizeof(struct savefpu);
	size = cpu_max_ext_state_size - sizeof(struct savefpu);
	error = fpusetregs(td, legacy, size == 0 ? NULL : extended, size);
	KASSERT(error == 0, ("lwc: restoring saved extended state: %d", error));
}

void
lwc_machine_return(struct thread *td, register_t value)
{
	td->td_retval[0] = value;
	td->td_retval[1] = td->td_frame->tf_rdx;
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Registers of a context on arm64: the trap frame, the thread pointers, and the
 * floating point registers. machine_amd64.c says why all of them are exchanged.
 *
 * Compiled but not run: no arm64 kernel was available. A context that uses SVE
 * has the upper parts of its vector registers as zeros after a switch, and its
 * predicates undefined, as after any system call.
 */
#include "context.h"

#include <machine/armreg.h>
#include <machine/cpu.h>
#include <machine/frame.h>
#include <machine/pcb.h>
#include <machine/vfp.h>

struct lwc_machine {
	struct trapframe frame;
	register_t thread_pointer;
	register_t read_only_thread_pointer;
	struct vfpstate floating;
};

size_t
lwc_machine_size(void)
{
	return (sizeof(struct lwc_machine));
}

struct lwc_machine *
lwc_machine_alloc(void)
{
	return (malloc(sizeof(struct lwc_machine), M_SHAI, M_WAITOK | M_ZERO));
}

void
lwc_machine_free(struct lwc_machine *machine)
{
	zfree(machine, M_SHAI);
}

void
lwc_machine_copy(struct lwc_machine *to, const struct lwc_machine *from)
{
	*to = *from;
}

void
lwc_machine_save(struct thread *td, struct lwc_machine *machine)
{
	struct pcb *pcb = td->td_pcb;

	machine->frame = *td->td_frame;
	machine->thread_pointer = READ_SPECIALREG(tpidr_el0);
	machine->read_only_thread_pointer = READ_SPECIALREG(tpidrro_el0);
	if ((pcb->pcb_fpflags & PCB_FP_STARTED) != 0)
		vfp_save_state(td, pcb);
#ifdef PCB_FP_SVEVALID
	/* After a preemption the registers are where SVE's are kept. */
	if ((pcb->pcb_fpflags & PCB_FP_SVEVALID) != 0)
		sve_to_vfp_sync(td);
#endif
	machine->floating = pcb->pcb_fpustate;
}

static void
restore(struct thread *td, const struct lwc_machine *machine)
{
	struct pcb *pcb = td->td_pcb;

	*td->td_frame = machine->frame;
	pcb->pcb_tpidr_el0 = machine->thread_pointer;
	pcb->pcb_tpidrro_el0 = machine->read_only_thread_pointer;
	WRITE_SPECIALREG(tpidr_el0, machine->thread_pointer);
	WRITE_SPECIALREG(tpidrro_el0, machine->read_only_thread_pointer);
	critical_enter();
	vfp_discard(td);
	pcb->pcb_fpustate = machine->floating;
	pcb->pcb_fpflags |= PCB_FP_STARTED;
#ifdef PCB_FP_SVEVALID
	pcb->pcb_fpflags &= ~PCB_FP_SVEVALID; /* they are the other context's */
#endif
	critical_exit();
}

void
lwc_machine_exchange(
    struct thread *td, struct lwc_machine *from, struct lwc_machine *to)
{
	lwc_machine_save(td, from);
	restore(td, to);
}

void
lwc_machine_return(struct thread *td, register_t value)
{
	td->td_retval[0] = value;
	td->td_retval[1] = td->td_frame->tf_x[1];
}

bool
lwc_machine_is_stepped(const struct thread *td)
{
	return ((td->td_pcb->pcb_flags & PCB_SINGLE_STEP) != 0);
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Registers of a context on amd64: the trap frame, the bases of %fs and %gs,
 * and the extended state. A redirected call returns to a program that may keep
 * values in vector registers across the instruction, and values of one user's
 * session must not be left in them for the next.
 *
 * The extended state is not copied. Each context has a save area of its own,
 * and a switch gives the thread the other context's: the processor writes only
 * the components that are in use and have changed (XSAVEOPT), and reads only
 * those that were in use. Components that were not are set to their initial
 * values when it reads, so nothing of the context that was left is in the
 * registers. Nothing of it is in the save area either, which the kernel reads
 * for signals, sigreturn(2) and debuggers.
 */
#include "context.h"

#include <machine/cpufunc.h>
#include <machine/fpu.h>
#include <machine/frame.h>
#include <machine/md_var.h>
#include <machine/pcb.h>
#include <machine/psl.h>
#include <x86/x86_var.h>

struct lwc_machine {
	struct trapframe frame;
	register_t fsbase;
	register_t gsbase;
#if __FreeBSD_version >= 1500000
	register_t tlsbase;
	u_int tlsbase_flag; /* PCB_TLSBASE */
#endif
	/* Of the context; while it is current, a spare one without meaning. */
	struct savefpu *extended;
};

size_t
lwc_machine_size(void)
{
	return (sizeof(struct lwc_machine) + cpu_max_ext_state_size);
}

struct lwc_machine *
lwc_machine_alloc(void)
{
	struct lwc_machine *machine =
	    malloc(sizeof(*machine), M_SHAI, M_WAITOK | M_ZERO);

	machine->extended = fpu_save_area_alloc();
	fpu_save_area_reset(machine->extended);
	return (machine);
}

void
lwc_machine_free(struct lwc_machine *machine)
{
	explicit_bzero(machine->extended, cpu_max_ext_state_size);
	fpu_save_area_free(machine->extended);
	zfree(machine, M_SHAI);
}

void
lwc_machine_copy(struct lwc_machine *to, const struct lwc_machine *from)
{
	struct savefpu *extended = to->extended;

	memcpy(extended, from->extended, cpu_max_ext_state_size);
	*to = *from;
	to->extended = extended;
}

/*
 * Saves the processor's extended state in the thread's save area. Returns
 * whether the processor had it.
 */
static bool
save_extended(struct thread *td)
{
	struct savefpu *area = get_pcb_user_save_td(td);
	struct pcb *pcb = td->td_pcb;

	CRITICAL_ASSERT(td);
	KASSERT(PCB_USER_FPU(pcb),
	    ("lwc: switch while the kernel uses the extended state"));
	if ((pcb->pcb_flags & PCB_USERFPUINITDONE) == 0) {
		fpu_save_area_reset(area);
		area->sv_env.en_cw = pcb->pcb_initial_fpucw;
		fpuuserinited(td);
		return (false);
	}
	if (td != PCPU_GET(fpcurthread))
		return (false);
	fpusave(area);
	return (true);
}

static void
save_frame(struct thread *td, struct lwc_machine *machine)
{
	struct pcb *pcb = td->td_pcb;

	machine->frame = *td->td_frame;
	update_pcb_bases(pcb);
	machine->fsbase = pcb->pcb_fsbase;
	machine->gsbase = pcb->pcb_gsbase;
#if __FreeBSD_version >= 1500000
	machine->tlsbase = pcb->pcb_tlsbase;
	machine->tlsbase_flag = pcb->pcb_flags & PCB_TLSBASE;
#endif
}

static void
restore_frame(struct thread *td, const struct lwc_machine *machine)
{
	struct pcb *pcb = td->td_pcb;

	*td->td_frame = machine->frame;
	/*
	 * The frame may come from a trap or from a call: return by iret, with
	 * every register.
	 */
	set_pcb_flags(pcb, PCB_FULL_IRET);
	pcb->pcb_fsbase = machine->fsbase;
	pcb->pcb_gsbase = machine->gsbase;
#if __FreeBSD_version >= 1500000
	pcb->pcb_tlsbase = machine->tlsbase;
	clear_pcb_flags(pcb, PCB_TLSBASE);
	set_pcb_flags(pcb, machine->tlsbase_flag);
#endif
}

void
lwc_machine_save(struct thread *td, struct lwc_machine *machine)
{
	save_frame(td, machine);
	critical_enter();
	(void)save_extended(td);
	memcpy(machine->extended, get_pcb_user_save_td(td),
	    cpu_max_ext_state_size);
	critical_exit();
}

void
lwc_machine_exchange(
    struct thread *td, struct lwc_machine *from, struct lwc_machine *to)
{
	struct savefpu *spare = from->extended;
	bool loaded;

	save_frame(td, from);
	critical_enter();
	loaded = save_extended(td);
	from->extended = get_pcb_user_save_td(td);
	td->td_md.md_usr_fpu_save = to->extended;
	td->td_pcb->pcb_save = to->extended;
	to->extended = spare;
	/* Otherwise the first instruction that uses it does this. */
	if (loaded)
		fpurestore(get_pcb_user_save_td(td));
	critical_exit();
	restore_frame(td, to);
}

void
lwc_machine_return(struct thread *td, register_t value)
{
	td->td_retval[0] = value;
	td->td_retval[1] = td->td_frame->tf_rdx;
}

bool
lwc_machine_is_stepped(const struct thread *td)
{
	return ((td->td_frame->tf_rflags & PSL_T) != 0);
}

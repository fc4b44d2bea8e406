/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Light-weight contexts inside the kernel.
 *
 * A context is a set of resources that a process can have in place of its own:
 * an address space, a descriptor table, directories, credentials, signal
 * actions, and the registers of its one thread. The process runs in one of its
 * contexts, the current one. The others keep their resources in struct
 * lwc_context. A switch exchanges them. There is no scheduling: the thread that
 * switches continues, on the same kernel stack, and returns to user mode with
 * the other context's registers.
 *
 * A process with contexts has one thread. p_vmspace, p_fd and p_sigacts belong
 * to the process, so a switch would move a second thread to another address
 * space in the middle of an instruction. A process with threads cannot create
 * its first context, and a process with contexts cannot create threads.
 *
 * Locking. (t) only the process's own thread touches it; there is one, so no
 * lock is needed. (l) lwc_lock, a leaf mutex. (p) exchanged under the process
 * lock, which other processes hold when they look at descriptors and
 * directories (fdhold, pdhold), at credentials, and when they deliver signals.
 * They look at the address space without a lock: vmspace_acquire_ref takes a
 * reference only from one that is alive, which the kernel's allocator of
 * address spaces allows at any time, and then looks again whether the process
 * still has it.
 *
 * Lifetime. Descriptors hold a context ("holders"); the process also holds its
 * root context. When the last holder goes, the context is doomed: its owner
 * discards it before it returns to user mode. If somebody else dropped the last
 * reference (a process that inspects the descriptor table), the owner discards
 * it at its next call of this module. The current context cannot be discarded;
 * it is doomed when it is left. When the process exits or executes a program,
 * all contexts but the current one are discarded, even if they are held:
 * descriptors then refer to a dead context.
 *
 * A context refers to its monitor, but does not hold it: a monitor has
 * descriptors of the contexts that it monitors, and both would live for ever.
 * Calls of a context whose monitor is dead are refused, and no longer
 * redirected. The structure itself stays until it is detached from its process
 * and has neither holders nor references.
 *
 * A context's table has descriptors only of contexts that were there before it,
 * or that it created. Therefore no two contexts hold each other.
 *
 * An address space is freed only while nobody holds the process (PHOLD). A
 * holder may use it without a reference, because a process's address space
 * otherwise lives as long as the process.
 */
#ifndef SHAI_CONTEXT_H
#define SHAI_CONTEXT_H

#include <sys/param.h>
#include <sys/systm.h>

#include <sys/file.h>
#include <sys/filedesc.h>
#include <sys/lock.h>
#include <sys/malloc.h>
#include <sys/mutex.h>
#include <sys/proc.h>
#include <sys/queue.h>
#include <sys/signalvar.h>
#include <sys/sysent.h>
#include <sys/ucred.h>

#include "conduits.h"
#include "lwc.h"
#include "rules.h"

MALLOC_DECLARE(M_SHAI);

struct lwc_machine;
struct vmspace;

/* The resources that a switch exchanges between process and context. (p) */
struct lwc_resources {
	struct vmspace *vmspace;
	struct filedesc *files;
	struct pwddesc *directories;
	struct ucred *credentials;
	struct sigacts *actions;
};

/* The state that the thread keeps for each address space. (t) */
struct lwc_thread_state {
	sigset_t mask;
	stack_t alternate_stack;
	int alternate_stack_flag; /* TDP_ALTSTACK */
	int fast_block_flags;     /* TDP_SIGFASTBLOCK, TDP_SIGFASTPENDING */
	void *fast_block_address;
	uint32_t fast_block_value;
	uintptr_t robust_list;
	uintptr_t robust_private_list;
	uintptr_t robust_inactive;
	int woken;        /* TDP_WAKEUP */
	sigset_t pending; /* signals to the thread, from its own calls */
#if __FreeBSD_version >= 1500000
	void *extended_errors;
	int extended_error_flags; /* TDP2_UEXTERR */
#endif
};

struct lwc_context {
	TAILQ_ENTRY(lwc_context) link;        /* (t) in the process */
	TAILQ_ENTRY(lwc_context) doomed_link; /* (l) */
	struct lwc_process *process;          /* (l) NULL once detached */
	u_int holders;                        /* (l) */
	u_int references;     /* (l) of the contexts that it monitors */
	bool doomed;          /* (l) on the list */
	enum lwc_state state; /* (t) */
	uint64_t id;          /* constant */
	struct lwc_resources resources; /* (t) while not current */
	struct lwc_thread_state thread; /* (t) while not current */
	struct lwc_machine *machine;    /* (t) while not current */
	struct lwc_context *monitor;    /* (t) NULL: nothing is redirected */
	struct lwc_context *caller;     /* (t) not held: reset when discarded */
	uint32_t caller_rights;         /* (t) */
	struct lwc_event *event; /* (t) user address, for the next event */
	uint64_t redirected[LWC_CALL_WORDS]; /* (t) */
	struct conduit_tree conduits;        /* (t) */
	u_int conduit_count;                 /* (t) */
	u_int kibibytes;                     /* (t) charged for what it pins */
	u_int conduit_kibibytes;             /* (t) charged for its grants */
};

TAILQ_HEAD(lwc_list, lwc_context);

struct lwc_user;

/* A process that has contexts. Only its own thread reaches this, through
 * p_emuldata. */
struct lwc_process {
	struct proc *proc;
	struct sysentvec *native; /* the original p_sysent */
	struct lwc_context *root; /* the first one */
	struct lwc_context *current;
	struct lwc_list contexts;
	struct lwc_list doomed; /* (l) */
	bool reaping;
	u_int borrowed; /* depth of calls on behalf of others */
	u_int count;
	struct lwc_user *user;
};

/* The f_data of a descriptor. */
struct lwc_reference {
	struct lwc_context *context;
	uint32_t rights; /* (t) */
};

/* A context that a call acts on, held for as long as the call takes. */
struct lwc_target {
	struct lwc_context *context;
	struct file *file; /* the descriptor's; NULL: named without one */
};

extern struct mtx lwc_lock;

/* process.c */
struct lwc_process *lwc_process_of(struct proc *p);
int lwc_adopt(struct thread *td, struct lwc_process **out);
void lwc_abandon(struct thread *td, struct lwc_process *process);
void lwc_reap(struct thread *td, struct lwc_process *process);
void lwc_discard_all(struct thread *td, struct lwc_process *process);

/* context.c */
int lwc_context_new(struct lwc_process *process, struct lwc_context **out);
void lwc_context_free(struct lwc_context *context);
void lwc_hold(struct lwc_context *context);
bool lwc_release_locked(struct lwc_context *context);
void lwc_release(struct lwc_context *context);
void lwc_refer(struct lwc_context *context);
void lwc_forget(struct lwc_context *context);
void lwc_resources_free(struct thread *td, struct lwc_context *context);
void lwc_exchange(struct thread *td, struct lwc_resources *resources,
    uint32_t use, struct lwc_thread_state *state);
#define LWC_USE_SIGNALS 0x8u /* internal: exchange the signal actions too */
#define LWC_USE_ALL                                                            \
	(LWC_USE_MEMORY | LWC_USE_FILES | LWC_USE_CREDENTIALS | LWC_USE_SIGNALS)
int lwc_switch_to(struct thread *td, struct lwc_process *process,
    struct lwc_context *target, enum lwc_step step);
void lwc_thread_save(struct thread *td, struct lwc_thread_state *state);

/* copy.c */
int lwc_copy_memory(struct vmspace *from, const struct lwc_range *ranges,
    u_int count, struct vmspace **out);
int lwc_copy_files(struct thread *td, struct filedesc *from,
    const struct lwc_descriptors *descriptors, u_int count,
    struct filedesc **out);

/* tables.c */
struct filedesc *lwc_install_files(struct proc *p, struct filedesc *files);
void lwc_free_files(struct thread *td, struct filedesc *files);
void lwc_free_directories(struct thread *td, struct pwddesc *directories);

/* descriptor.c */
extern const struct fileops lwc_fileops;
int lwc_descriptor_open(
    struct thread *td, struct lwc_context *context, int *descriptor);
int lwc_target_get(struct thread *td, struct lwc_process *process,
    int descriptor, uint32_t rights, struct lwc_target *target);
void lwc_target_put(
    struct thread *td, struct lwc_process *process, struct lwc_target *target);

/* vectors.c */
void lwc_vectors_init(sy_call_t *dispatch, void (*exits)(struct proc *),
    void (*executes)(struct thread *));
void lwc_vectors_fini(void);
bool lwc_vectors_installed(const struct proc *p);
struct sysentvec *lwc_vector_for(struct sysentvec *native);

/* redirect.c */
void lwc_redirect_init(void);
int lwc_native_call(struct thread *td, int number, void *arguments);
bool lwc_call_on_behalf(int number);

/* machine_<architecture>.c */
size_t lwc_machine_size(void);
struct lwc_machine *lwc_machine_alloc(void);
void lwc_machine_free(struct lwc_machine *machine);
void lwc_machine_copy(struct lwc_machine *to, const struct lwc_machine *from);
void lwc_machine_save(struct thread *td, struct lwc_machine *machine);
void lwc_machine_exchange(
    struct thread *td, struct lwc_machine *from, struct lwc_machine *to);
void lwc_machine_return(struct thread *td, register_t value);
/*
 * Reports whether the thread traps after the instruction that made the call.
 * The kernel knows that from the call's beginning, and would raise the signal
 * in whichever context the call ends.
 */
bool lwc_machine_is_stepped(const struct thread *td);

/* pinned.c */
int lwc_pin(struct lwc_process *process, struct lwc_context *context,
    const struct lwc_resources *resources);
void lwc_pin_present(struct lwc_process *process, struct lwc_context *context);
int lwc_charge_conduit(
    struct lwc_process *process, struct lwc_context *context);
void lwc_unpin(struct lwc_process *process, struct lwc_context *context);

/* limits.c */
void lwc_limits_init(void);
int lwc_charge_context(struct lwc_process *process);
void lwc_discharge_context(struct lwc_process *process);
void lwc_charge_process(struct lwc_process *process, uid_t uid);
void lwc_discharge_process(struct lwc_process *process);
bool lwc_conduit_fits(const struct lwc_context *context);
int lwc_charge_memory(struct lwc_user *user, u_int *charged, u_int amount);
void lwc_charge_present(struct lwc_user *user, u_int *charged, u_int amount);
bool lwc_is_overcharged(const struct lwc_user *user);
int shai_charge_channel(uid_t uid, u_int amount, struct lwc_user **user);
void shai_discharge_channel(struct lwc_user *user, u_int amount);
int shai_charge_files(struct lwc_user *user, u_int number);
void shai_discharge_files(struct lwc_user *user, u_int number);
bool shai_in_use(void);
void shai_count_file(int change);
void shai_count_redirection(void);
void shai_count_switch(void);
void shai_count_withheld(u_int number);

/* calls.c and channel.c */
struct lwc_create_args;
struct lwc_switch_args;
struct lwc_restrict_args;
struct lwc_overlay_args;
struct lwc_syscall_args;
struct shai_grant_args;
struct shai_channel_args;
struct shai_send_args;
struct shai_receive_args;
int sys_lwc_create(struct thread *td, struct lwc_create_args *arguments);
int sys_lwc_switch(struct thread *td, struct lwc_switch_args *arguments);
int sys_lwc_restrict(struct thread *td, struct lwc_restrict_args *arguments);
int sys_lwc_overlay(struct thread *td, struct lwc_overlay_args *arguments);
int sys_lwc_syscall(struct thread *td, struct lwc_syscall_args *arguments);
int sys_shai_grant(struct thread *td, struct shai_grant_args *arguments);
int sys_shai_channel(struct thread *td, struct shai_channel_args *arguments);
int sys_shai_send(struct thread *td, struct shai_send_args *arguments);
int sys_shai_receive(struct thread *td, struct shai_receive_args *arguments);

#endif

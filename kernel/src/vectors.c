/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The system call vectors of processes with contexts.
 *
 * Such a process gets a sysentvec that is a copy of its own, except for its
 * table and its end. Every entry of the table leads to one function and is
 * marked as allowed in capability mode, so that calls which the kernel would
 * refuse before looking at them come there too. Other processes keep their
 * vector and pay nothing.
 */
#include "context.h"

#include <sys/imgact.h>
#include <sys/sx.h>
#include <sys/syscall.h>

#include "compat.h"

#define MODULE_ARGUMENTS 6 /* passed in registers on every architecture */

/* Our copy of one of the system's vectors. */
struct vector {
	SLIST_ENTRY(vector) link;
	const struct sysentvec *native;
	struct sysentvec copy;
	char name[64];
};

static SLIST_HEAD(, vector) vectors = SLIST_HEAD_INITIALIZER(
    vectors); /* by vectors_lock */
static struct sx vectors_lock;
static struct sysent table[SYS_MAXSYSCALL];
static void (*process_exits)(struct proc *);
static void (*process_executes)(struct thread *);

bool
lwc_vectors_installed(const struct proc *p)
{
	return (p->p_sysent->sv_table == table);
}

/*
 * Returns our copy of a native vector, made once for each. NULL if it does not
 * look like the system's.
 */
struct sysentvec *
lwc_vector_for(struct sysentvec *native)
{
	struct vector *vector;

	if (native->sv_table != sysent || native->sv_size > SYS_MAXSYSCALL)
		return (NULL);
	sx_xlock(&vectors_lock);
	SLIST_FOREACH(vector, &vectors, link) {
		if (vector->native == native)
			break;
	}
	if (vector == NULL) {
		vector = malloc(sizeof(*vector), M_SHAI, M_WAITOK | M_ZERO);
		vector->native = native;
		vector->copy = *native;
		/* By kern.proc.sv_name others see that a process has contexts.
		 */
		(void)snprintf(vector->name, sizeof(vector->name),
		    "%s with contexts", native->sv_name);
		vector->copy.sv_name = vector->name;
		vector->copy.sv_table = table;
		vector->copy.sv_onexit = process_exits;
		vector->copy.sv_onexec_old = process_executes;
		SLIST_INSERT_HEAD(&vectors, vector, link);
	}
	sx_xunlock(&vectors_lock);
	return (&vector->copy);
}

/*
 * Makes every call go to dispatch, and sets the functions that are called at
 * the end of a process's image.
 */
void
lwc_vectors_init(sy_call_t *dispatch, void (*exits)(struct proc *),
    void (*executes)(struct thread *))
{
	process_exits = exits;
	process_executes = executes;
	sx_init(&vectors_lock, "shai vectors");
	for (u_int i = 0; i < SYS_MAXSYSCALL; i++) {
		table[i] = sysent[i];
		table[i].sy_call = dispatch;
		table[i].sy_flags |= SYF_CAPENABLED;
		/* Its probes come and go with a module of their own. */
		table[i].sy_entry = 0;
		table[i].sy_return = 0;
		/* Calls that modules add later have their arguments in
		 * registers. */
		if ((sysent[i].sy_thrcnt & SY_THR_STATIC) == 0)
			table[i].sy_narg = MODULE_ARGUMENTS;
		table[i].sy_thrcnt = SY_THR_STATIC;
	}
}

/* Called only when no process has one of the vectors any more. */
void
lwc_vectors_fini(void)
{
	struct vector *vector;

	while ((vector = SLIST_FIRST(&vectors)) != NULL) {
		SLIST_REMOVE_HEAD(&vectors, link);
		free(vector, M_SHAI);
	}
	sx_destroy(&vectors_lock);
}

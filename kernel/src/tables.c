/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Tables of descriptors and directories that are not the process's. The
 * kernel's functions act on the process's tables, so these take their place
 * during such calls.
 */
#include "context.h"

#include <sys/racct.h>
#include <sys/resourcevar.h>

/* Makes a table the process's, and returns the previous one. */
struct filedesc *
lwc_install_files(struct proc *p, struct filedesc *files)
{
	struct filedesc *old;

	PROC_LOCK(p);
	old = p->p_fd;
	p->p_fd = files;
	PROC_UNLOCK(p);
	return (old);
}

/* Closes all descriptors of a table that is not the process's, and frees the
 * table. */
void
lwc_free_files(struct thread *td, struct filedesc *files)
{
	struct filedesc *kept = lwc_install_files(td->td_proc, files);

	fdescfree(td);
	(void)lwc_install_files(td->td_proc, kept);
#ifdef RACCT
	if (RACCT_ENABLED() && kept != NULL)
		(void)racct_set_unlocked(
		    td->td_proc, RACCT_NOFILE, kept->fd_nfiles);
#endif
}

/* The same for directories. */
void
lwc_free_directories(struct thread *td, struct pwddesc *directories)
{
	struct proc *p = td->td_proc;
	struct pwddesc *kept;

	PROC_LOCK(p);
	kept = p->p_pd;
	p->p_pd = directories;
	PROC_UNLOCK(p);
	pdescfree(td);
	PROC_LOCK(p);
	p->p_pd = kept;
	PROC_UNLOCK(p);
}

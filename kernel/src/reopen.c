/* SPDX-License-Identifier: BSD-2-Clause */
#include "reopen.h"

#include <sys/fcntl.h>
#include <sys/vnode.h>

static int
open_vnode(struct thread *td, struct vnode *vp, u_int flags, struct file *fresh)
{
	int error;

	error = vn_lock(vp, LK_EXCLUSIVE);
	if (error != 0)
		return (error);
	error = vn_open_vnode(vp, flags, fresh->f_cred, td, fresh);
	if (error == 0) {
		vref(vp);
		fresh->f_vnode = vp;
		/* Some file systems have made it a file with operations of
		 * their own. */
		if (fresh->f_ops == &badfileops)
			finit_vnode(fresh, flags, NULL, &vnops);
	}
	VOP_UNLOCK(vp);
	return (error);
}

int
reopen_file(struct thread *td, const struct file *old, u_int flags,
    struct ucred *credentials, struct file **out)
{
	struct vnode *vp = old->f_vnode;
	struct file *fresh;
	int error;

	if (old->f_type != DTYPE_VNODE || vp == NULL ||
	    (vp->v_type != VREG && vp->v_type != VDIR))
		return (EOPNOTSUPP);
	error = falloc_noinstall(td, &fresh);
	if (error != 0)
		return (error);
	crfree(fresh->f_cred);
	fresh->f_cred = crhold(credentials);
	error = open_vnode(td, vp, flags, fresh);
	if (error == 0)
		*out = fresh;
	else
		fdrop(fresh, td);
	return (error);
}

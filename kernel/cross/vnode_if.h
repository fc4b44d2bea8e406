/* SPDX-License-Identifier: BSD-2-Clause
 *
 * In place of what a kernel's own build generates from its list of vnode
 * operations: the few that the module's sources call.
 */
#ifndef VNODE_IF_H
#define VNODE_IF_H

struct vnode;

int VOP_UNLOCK(struct vnode *vp);

#endif

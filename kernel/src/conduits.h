/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The conduits of which one context may receive descriptors: a red-black tree,
 * so that the cost of a look-up is logarithmic. It allocates nothing and locks
 * nothing: the caller owns the nodes and excludes concurrent writers. Compiled
 * into the module and into user-space tests.
 */
#ifndef SHAI_CONDUITS_H
#define SHAI_CONDUITS_H

#ifdef _KERNEL
#include <sys/param.h>
#include <sys/systm.h>
#else
#include <stdbool.h>
#include <stddef.h>
#ifndef __unused
#define __unused __attribute__((__unused__)) /* the header below expects it */
#endif
#endif
#include <sys/tree.h>

#include "lwc.h"

struct conduit_node {
	RB_ENTRY(conduit_node) link;
	struct shai_conduit conduit;
};

RB_HEAD(conduit_tree, conduit_node);

/*
 * Adds a node. Returns NULL if the tree took it. If the conduit is there
 * already, its rights become the union of both, and the node is returned and
 * stays the caller's.
 */
struct conduit_node *conduits_add(
    struct conduit_tree *tree, struct conduit_node *node);

/*
 * Reports whether the conduit is there with all of these rights. Always false
 * without rights.
 */
bool conduits_cover(
    struct conduit_tree *tree, uint64_t device, uint64_t file, uint32_t rights);

/* Takes any node out; the caller frees it. Returns NULL if the tree is empty.
 */
struct conduit_node *conduits_take(struct conduit_tree *tree);

#endif

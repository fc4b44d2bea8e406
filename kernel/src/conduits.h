/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The conduits that one context may receive descriptors of: a red-black tree, so
 * that a look-up takes a number of comparisons logarithmic in its size.
 * It allocates nothing and locks nothing: nodes are the caller's, and so is the
 * exclusion of writers. Compiled into the module and into user-space tests.
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
 * Adds a node. Returns NULL when the tree took it; when the conduit is there
 * already its rights become the union of both and the node is returned, still
 * the caller's.
 */
struct conduit_node *conduits_add(struct conduit_tree *tree, struct conduit_node *node);

/* Whether the conduit is there with all of these rights. No rights: never. */
bool conduits_cover(struct conduit_tree *tree, uint64_t device, uint64_t file, uint32_t rights);

/* Takes any node out, for the caller to free. NULL when the tree is empty. */
struct conduit_node *conduits_take(struct conduit_tree *tree);

#endif

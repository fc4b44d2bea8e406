/* SPDX-License-Identifier: BSD-2-Clause */
#include "conduits.h"

static int
compare(const struct conduit_node *a, const struct conduit_node *b)
{
	if (a->conduit.device != b->conduit.device)
		return (a->conduit.device < b->conduit.device ? -1 : 1);
	if (a->conduit.file != b->conduit.file)
		return (a->conduit.file < b->conduit.file ? -1 : 1);
	return (0);
}

RB_GENERATE_STATIC(conduit_tree, conduit_node, link, compare);

struct conduit_node *
conduits_add(struct conduit_tree *tree, struct conduit_node *node)
{
	struct conduit_node *present = RB_INSERT(conduit_tree, tree, node);

	if (present == NULL)
		return (NULL);
	present->conduit.rights |= node->conduit.rights;
	return (node);
}

bool
conduits_cover(
    struct conduit_tree *tree, uint64_t device, uint64_t file, uint32_t rights)
{
	struct conduit_node wanted = {
	    .conduit = {.device = device, .file = file}};
	struct conduit_node *found = RB_FIND(conduit_tree, tree, &wanted);

	return (rights != 0 && found != NULL &&
		(rights & ~found->conduit.rights) == 0);
}

struct conduit_node *
conduits_take(struct conduit_tree *tree)
{
	struct conduit_node *node = RB_ROOT(tree);

	if (node != NULL)
		RB_REMOVE(conduit_tree, tree, node);
	return (node);
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A user's profile in the key-value store:
 * {"user":"alice","friends":["bob"],"interests":["botany"]}.
 */
#ifndef SYSE_PROFILE_H
#define SYSE_PROFILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "terms.h"

#define PROFILE_INTERESTS_MAX 1024 /* bytes of all interests together; further ones are ignored */

struct profile {
	json_t *root;    /* owned; NULL for an empty profile */
	json_t *friends; /* array of strings, borrowed from root; NULL when there are none */
	struct terms interests;
	char words[PROFILE_INTERESTS_MAX]; /* the text that interests points into */
};

/*
 * Parses the profile; size 0 makes an empty one. Returns whether it is well formed.
 * If it is not, *profile is empty. Release it in both cases.
 */
bool profile_parse(struct profile *profile, const char *json, size_t size);

void profile_release(struct profile *profile);

#endif

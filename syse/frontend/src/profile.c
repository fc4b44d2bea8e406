/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile.h"

#include <string.h>

#include "shallow.h"

static void
add_interests(struct profile *profile, const json_t *interests)
{
	const json_t *interest;
	size_t used = 0, i;

	json_array_foreach(interests, i, interest)
	{
		size_t length = json_string_length(interest); /* 0 if it is not a string */

		if (length == 0 || length > sizeof profile->words - used)
			continue;
		memcpy(profile->words + used, json_string_value(interest), length);
		terms_add(&profile->interests, used, length);
		used += length;
	}
}

bool
profile_parse(struct profile *profile, const char *json, size_t size)
{
	json_t *friends;

	profile->root = profile->friends = NULL;
	terms_split(&profile->interests, profile->words, 0);
	if (size == 0)
		return true;
	profile->root = shallow_read(json, size);
	if (!json_is_object(profile->root)) {
		profile_release(profile);
		return false;
	}
	friends = json_object_get(profile->root, "friends");
	profile->friends = json_is_array(friends) ? friends : NULL;
	add_interests(profile, json_object_get(profile->root, "interests"));
	return true;
}

void
profile_release(struct profile *profile)
{
	json_decref(profile->root);
	profile->root = profile->friends = NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "keys.h"

#include <errno.h>
#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The state while the file is read. */
struct loading {
	struct keys *keys;
	size_t room; /* elements that keys->key has space for */
	const char *path;
	size_t line;
	char *reason;
	size_t reason_size;
};

static bool
wrong(const struct loading *loading, const char *what)
{
	snprintf(loading->reason, loading->reason_size, "read keys: %s, line %zu: %s",
	    loading->path, loading->line, what);
	return false;
}

static int
compare_keys(const void *a, const void *b)
{
	return strcmp(((const struct key *)a)->principal, ((const struct key *)b)->principal);
}

static bool
add_key(struct loading *loading, const json_t *tuple)
{
	const char *principal = json_string_value(json_array_get(tuple, 0));
	const char *hex = json_string_value(json_array_get(tuple, 1));
	struct keys *keys = loading->keys;
	struct key *key;
	size_t size;

	if (principal == NULL || hex == NULL || json_array_size(tuple) != 2)
		return wrong(loading, "a key's tuple is not [principal, key]");
	if (keys->count == loading->room) {
		size_t room = loading->room == 0 ? 1024 : loading->room * 2;
		struct key *more = reallocarray(keys->key, room, sizeof *more);

		if (more == NULL)
			return wrong(loading, "out of memory");
		keys->key = more;
		loading->room = room;
	}
	key = &keys->key[keys->count];
	if (sodium_hex2bin(key->public, sizeof key->public, hex, strlen(hex), NULL, &size, NULL) !=
		0 ||
	    size != sizeof key->public || strlen(hex) != 2 * sizeof key->public)
		return wrong(loading, "a key is not 64 hexadecimal digits");
	key->principal = strdup(principal);
	if (key->principal == NULL)
		return wrong(loading, "out of memory");
	keys->count++;
	return true;
}

static bool
add_fact(struct loading *loading, const json_t *fact)
{
	const char *says = json_string_value(json_object_get(fact, "says"));
	const char *conduit = json_string_value(json_object_get(fact, "conduit"));
	json_t *tuples = json_object_get(fact, "tuples"), *tuple;
	size_t i;

	if (says == NULL || conduit == NULL || !json_is_array(tuples))
		return wrong(
		    loading, "not a fact: \"conduit\", \"says\" and \"tuples\" are needed");
	if (strcmp(says, "key") != 0 || strcmp(conduit, "population") != 0)
		return true;
	json_array_foreach(tuples, i, tuple)
	{
		if (!add_key(loading, tuple))
			return false;
	}
	return true;
}

static bool
add_line(struct loading *loading, const char *line, size_t size)
{
	json_error_t error;
	json_t *fact;
	bool good;

	/*
	 * Friend lists are most of the file. In them, this text can only be inside a
	 * string.
	 */
	if (strstr(line, "\"key\"") == NULL)
		return true;
	fact = json_loadb(line, size, JSON_REJECT_DUPLICATES, &error);
	if (fact == NULL)
		return wrong(loading, error.text);
	good = add_fact(loading, fact);
	json_decref(fact);
	return good;
}

static bool
sort_keys(struct loading *loading)
{
	struct keys *keys = loading->keys;

	if (keys->count == 0)
		return wrong(loading, "the file contains no keys: "
				      "{\"conduit\":\"population\",\"says\":\"key\",…} is missing");
	qsort(keys->key, keys->count, sizeof *keys->key, compare_keys);
	for (size_t i = 1; i < keys->count; i++)
		if (compare_keys(&keys->key[i - 1], &keys->key[i]) == 0)
			return wrong(loading, "a principal has two keys");
	return true;
}

bool
keys_load(struct keys *keys, const char *path, char *reason, size_t reason_size)
{
	struct loading loading = {
	    .keys = keys, .path = path, .reason = reason, .reason_size = reason_size};
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t capacity = 0;
	ssize_t size;
	bool good = true;

	memset(keys, 0, sizeof *keys);
	if (file == NULL) {
		snprintf(reason, reason_size, "read keys: %s: %s", path, strerror(errno));
		return false;
	}
	while (good && (size = getline(&line, &capacity, file)) > 0) {
		loading.line++;
		good = add_line(&loading, line, (size_t)size);
	}
	if (good && ferror(file))
		good = wrong(&loading, "reading failed");
	free(line);
	fclose(file);
	good = good && sort_keys(&loading);
	if (!good)
		keys_release(keys);
	return good;
}

void
keys_release(struct keys *keys)
{
	for (size_t i = 0; i < keys->count; i++)
		free((char *)(uintptr_t)keys->key[i].principal);
	free(keys->key);
	memset(keys, 0, sizeof *keys);
}

const struct key *
keys_find(const struct keys *keys, const char *principal)
{
	struct key wanted = {.principal = principal};

	if (keys->count == 0)
		return NULL;
	return bsearch(&wanted, keys->key, keys->count, sizeof *keys->key, compare_keys);
}

bool
keys_verify(const struct keys *keys, const struct shai_session *session, const char *principal,
    const uint8_t signature[SHAI_SIGNATURE_SIZE], char *reason, size_t reason_size)
{
	char text[SHAI_SIGNED_TEXT_SIZE];
	size_t size = shai_signed_text(session, principal, text);
	const struct key *key = keys_find(keys, principal);

	if (key == NULL) {
		snprintf(reason, reason_size, "no public key is registered for principal \"%s\"",
		    principal);
		return false;
	}
	if (size == 0) {
		snprintf(reason, reason_size,
		    "the name of the principal, of the service or of the pipeline is empty, too "
		    "long, or has a line break");
		return false;
	}
	if (crypto_sign_verify_detached(
		signature, (const unsigned char *)text, size, key->public) != 0) {
		snprintf(reason, reason_size,
		    "the signature does not match \"%s\"'s key and this connection's nonce at "
		    "service %s, pipeline %s; check the login key, that the nonce is from GET "
		    "/session on the same connection, and where it was opened",
		    principal, session->service, session->pipeline);
		return false;
	}
	return true;
}

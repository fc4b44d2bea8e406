/* SPDX-License-Identifier: BSD-2-Clause */
#include "request.h"

#include "shai_wire.h"

static bool
numbered(const json_t *line, uint32_t *query)
{
	const json_t *number = json_object_get(line, "query");
	json_int_t value = json_integer_value(number);

	if (!json_is_integer(number) || value < 0 || value > UINT32_MAX)
		return false;
	*query = (uint32_t)value;
	return true;
}

static bool
are_names(const json_t *friends)
{
	const json_t *name;
	size_t i;

	if (friends == NULL)
		return true;
	if (!json_is_array(friends))
		return false;
	json_array_foreach(friends, i, name) if (!json_is_string(name)) return false;
	return true;
}

const char *
request_read(struct request *request, const char *line, size_t length)
{
	const json_t *checked;
	json_int_t count;

	*request = (struct request){.line = json_loadb(line, length, 0, NULL)};
	if (!json_is_object(request->line))
		return "it is not a JSON object";
	if (!numbered(request->line, &request->query))
		return "it has no number";
	request->user = json_string_value(json_object_get(request->line, "user"));
	request->friends = json_object_get(request->line, "friends");
	count = json_integer_value(json_object_get(request->line, "count"));
	checked = json_object_get(request->line, "checked");
	if (request->user == NULL || count < 1 || !are_names(request->friends) ||
	    !json_is_string(json_object_get(request->line, "text")) ||
	    (checked != NULL && !json_is_boolean(checked)))
		return "a query needs query, user, text and a count of at least 1";
	request->count = count < SHAI_BATCH_MAX ? (uint32_t)count : SHAI_BATCH_MAX;
	request->checked = json_is_true(checked);
	return NULL;
}

void
request_release(struct request *request)
{
	json_decref(request->line);
	request->line = NULL;
}

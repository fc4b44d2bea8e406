/* SPDX-License-Identifier: BSD-2-Clause */
#include "click.h"

#include "tuples.h"

int
click_record(
    struct worker *worker, uint32_t id, struct document *document, char *reason, size_t reason_size)
{
	char storage[DOCUMENT_TITLE_MAX + 16];
	struct keyvalue_user user;
	struct text entry;
	int status = document_open(&worker->session, id, document, reason, reason_size);

	if (status != 200)
		return status;
	text_init(&entry, storage, sizeof storage);
	text_number(&entry, id);
	text_string(&entry, " ");
	text_append(&entry, document->title, document->title_length);
	if (tuples_begin(worker, &user) &&
	    keyvalue_click(&worker->keyvalue, &user, entry.data, entry.length))
		return 200;
	return tuples_failed(worker, "remember what you opened", reason, reason_size);
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Whatever a client sends, the worker answers or closes the connection, and stays
 * within its memory. The first byte chooses whether a user is logged in; the rest is
 * the data of the connection.
 */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"
#include "stand_in.h"
#include "worker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const DOCUMENTS[] = {
    "title: Blue\nowner: -\nvisibility: public\n\nwhy the sky is blue\n",
    "title: <b>\nowner: bob\nvisibility: friends\n\n<script>\xff\n",
    "",
    NULL,
};

/* As a monitor may send it: it has text of the documents' names. */
static const struct shai_offer OFFER = {.conduit = "/corpus/friends/alice/<\xff>.txt",
    .nonce = "00",
    .policy = "friends(owner: \"alice\")",
    .count = 1,
    .choice = {"private(owner: \"alice\")"}};

static void
load(struct assets *assets)
{
	static const struct asset_sources sources = {.page = SYSE_ASSETS "/page.html",
	    .advertisements = SYSE_ASSETS "/advertisements.txt",
	    .topics = SYSE_ASSETS "/topics.txt",
	    .pipeline = "syse"};
	char reason[512];

	if (sodium_init() < 0 || !assets_load(assets, &sources, reason, sizeof reason)) {
		fprintf(stderr, "%s\n", reason);
		abort();
	}
	http_prepare();
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct settings settings = {.service = SERVE_ALL,
	    .results = 10,
	    .login_timeout = 50,
	    .idle_timeout = 50,
	    .request_timeout = 50,
	    .answer_timeout = 50};
	static struct assets assets;
	static struct keys keys;
	static struct worker worker;
	char answer[4096];
	int client, queries;

	if (size < 1)
		return 0;
	if (assets.page == NULL)
		load(&assets);
	stand_in.documents = DOCUMENTS;
	stand_in.offer = &OFFER;
	memset(&worker, 0, sizeof worker);
	worker.settings = &settings;
	worker.assets = &assets;
	worker.keys = &keys;
	client = stand_in_session(&worker.session, data[0] & 1, &queries);
	if (data[0] & 1)
		strcpy(worker.principal, "alice");
	if (write(client, data + 1, size - 1) < 0)
		abort();
	shutdown(client, SHUT_WR);
	worker_serve(&worker);
	while (recv(client, answer, sizeof answer, MSG_DONTWAIT) > 0)
		continue;
	keyvalue_release(&worker.keyvalue);
	stand_in_end(&worker.session);
	close(queries);
	close(client);
	return 0;
}

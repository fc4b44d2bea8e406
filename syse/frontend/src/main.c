/* SPDX-License-Identifier: BSD-2-Clause
 *
 * syse-frontend: options and static data, then the zygote.
 */
#include <jansson.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "http.h"
#include "options.h"
#include "zygote.h"

/*
 * In mode baseline the front end itself needs the keys. In the other modes it must
 * not have them.
 */
static bool
load_keys(struct keys *keys, const struct settings *settings, char *reason, size_t reason_size)
{
	if (shai_mode() != SHAI_MODE_BASELINE)
		return true;
	if (settings->keys == NULL || settings->keyvalue_socket == NULL) {
		snprintf(
		    reason, reason_size, "mode baseline needs --keys and --keyvalue, see --help");
		return false;
	}
	return keys_load(keys, settings->keys, reason, reason_size);
}

/*
 * The heap holds a user's profile three times while it is read: received, copied and
 * parsed. 128 KiB are enough for some 2,000 friends. hiredis reads through 16 KiB of stack.
 */
#define SESSION_HEAP ((size_t)128 << 10)
/* Interests read a history: 100 entries of 1,024 bytes. */
#define INTERESTS_HEAP ((size_t)256 << 10)
#define SESSION_STACK ((size_t)48 << 10)

/* Does here, once, what every worker would otherwise do again. */
static void
prepare_for_forking(enum service service)
{
	time_t now = 0;
	struct tm parts;

	gmtime_r(&now, &parts); /* reads the time zone's file, which a worker may not open */
	/* Otherwise jansson would open /dev/urandom, possibly during a session. */
	json_object_seed(randombytes_random() | 1);
	http_prepare();
	shai_reserve(service == SERVE_INTERESTS ? INTERESTS_HEAP : SESSION_HEAP, SESSION_STACK);
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

int
main(int argc, char **argv)
{
	struct settings settings = {
	    .service = SERVE_SEARCH,
	    .workers = 32,
	    .results = 10,
	    .login_timeout = 5000,
	    .idle_timeout = 60000,
	    .request_timeout = 10000,
	    .answer_timeout = 5000,
	    .assets.pipeline = getenv(SHAI_ENVIRONMENT_PIPELINE),
	    .keys = getenv("SYSE_KEYS"),
	    .keyvalue_socket = getenv("SYSE_KEYVALUE"),
	};
	static struct worker worker;
	static struct assets assets;
	static struct keys keys;
	char reason[1024];
	int status;

	options_parse(&settings, argc, argv);
	if (sodium_init() < 0) {
		fprintf(stderr, "syse-frontend: libsodium cannot be initialised\n");
		return EXIT_FAILURE;
	}
	if (!assets_load(&assets, &settings.assets, reason, sizeof reason) ||
	    !load_keys(&keys, &settings, reason, sizeof reason)) {
		fprintf(stderr, "syse-frontend: %s\n", reason);
		return EXIT_FAILURE;
	}
	worker.settings = &settings;
	worker.assets = &assets;
	worker.keys = &keys;
	prepare_for_forking(settings.service);
	status = zygote_run(&worker);
	/*
	 * A worker has no work for exit handlers, and each page that they touch would
	 * cost a copy.
	 */
	_exit(status);
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * syse-frontend: options and static data, then the zygote.
 */
#include <errno.h>
#include <getopt.h>
#include <jansson.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "http.h"
#include "zygote.h"

static const char USAGE[] =
    "usage: syse-frontend --advertisements FILE --page FILE [OPTION]...\n"
    "\n"
    "The front end of Sys-E: keeps forked workers ready, each of which serves one\n"
    "user's session over HTTP. The monitor starts it and gives it its\n"
    "descriptors.\n"
    "\n"
    "  --serve search|support   what to serve (search); support shows employees users'\n"
    "                           documents, each after an entry in the log of accesses\n"
    "  --fault FAULT            of the support, to see it stopped: none, skip-entry,\n"
    "                           forge-entry, date-ahead\n"
    "  --advertisements FILE    one advertisement a line; \"#\" begins a comment\n"
    "  --page FILE              the search page\n"
    "  --pipeline NAME          the pipeline's name, which logins sign; or $SHAI_PIPELINE\n"
    "  --workers N              workers kept alive, 1 to 32 (32); a supervisor decides itself\n"
    "  --results N              results of a search that does not say how many, 1 to 64 (10)\n"
    "  --login-timeout SECONDS  until a connection without a user is closed (5)\n"
    "  --idle-timeout SECONDS   until an idle connection with a user is closed (60)\n"
    "  --request-timeout SECONDS  for receiving a request, and for sending an answer (10)\n"
    "  --answer-timeout SECONDS for the search engine and the key-value store (5)\n"
    "\n"
    "Used in mode baseline only, where nothing is enforced:\n"
    "  --keys FILE              facts with the principals' public keys; or $SYSE_KEYS\n"
    "  --keyvalue SOCKET        the key-value store's unix socket; or $SYSE_KEYVALUE\n"
    "  --single-session         end a worker after one session, as in the other modes\n"
    "\n"
    "  --help                   this text\n"
    "\n"
    "example: syse-frontend --advertisements advertisements.txt --page page.html\n";

enum option_code {
	OPTION_SERVE = 1,
	OPTION_FAULT,
	OPTION_ADVERTISEMENTS,
	OPTION_PAGE,
	OPTION_PIPELINE,
	OPTION_WORKERS,
	OPTION_RESULTS,
	OPTION_LOGIN_TIMEOUT,
	OPTION_IDLE_TIMEOUT,
	OPTION_REQUEST_TIMEOUT,
	OPTION_ANSWER_TIMEOUT,
	OPTION_KEYS,
	OPTION_KEYVALUE,
	OPTION_SINGLE_SESSION,
	OPTION_HELP
};

static const struct option OPTIONS[] = {
    {"serve", required_argument, NULL, OPTION_SERVE},
    {"fault", required_argument, NULL, OPTION_FAULT},
    {"advertisements", required_argument, NULL, OPTION_ADVERTISEMENTS},
    {"page", required_argument, NULL, OPTION_PAGE},
    {"pipeline", required_argument, NULL, OPTION_PIPELINE},
    {"workers", required_argument, NULL, OPTION_WORKERS},
    {"results", required_argument, NULL, OPTION_RESULTS},
    {"login-timeout", required_argument, NULL, OPTION_LOGIN_TIMEOUT},
    {"idle-timeout", required_argument, NULL, OPTION_IDLE_TIMEOUT},
    {"request-timeout", required_argument, NULL, OPTION_REQUEST_TIMEOUT},
    {"answer-timeout", required_argument, NULL, OPTION_ANSWER_TIMEOUT},
    {"keys", required_argument, NULL, OPTION_KEYS},
    {"keyvalue", required_argument, NULL, OPTION_KEYVALUE},
    {"single-session", no_argument, NULL, OPTION_SINGLE_SESSION},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static _Noreturn void
misused(const char *what, const char *detail)
{
	fprintf(stderr, "syse-frontend: %s%s; see syse-frontend --help\n", what, detail);
	exit(EXIT_FAILURE);
}

static int
number_argument(const char *name, int smallest, int largest)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(optarg, &end, 10);
	if (errno != 0 || end == optarg || *end != '\0' || value < smallest || value > largest) {
		fprintf(stderr,
		    "syse-frontend: --%s %s: a number from %d to %d is expected; see syse-frontend "
		    "--help\n",
		    name, optarg, smallest, largest);
		exit(EXIT_FAILURE);
	}
	return (int)value;
}

/* Returns the number of the option's argument among names, of which the last one is NULL. */
static int
choice_argument(const char *name, const char *const *names)
{
	for (int i = 0; names[i] != NULL; i++)
		if (strcmp(names[i], optarg) == 0)
			return i;
	fprintf(stderr, "syse-frontend: --%s %s is not known; see syse-frontend --help\n", name,
	    optarg);
	exit(EXIT_FAILURE);
}

static int
seconds_argument(const char *name)
{
	return number_argument(name, 1, 86400) * 1000;
}

static void
apply_option(struct settings *settings, int code, const char *name)
{
	static const char *const services[] = {"search", "support", NULL};
	static const char *const faults[] = {
	    "none", "skip-entry", "forge-entry", "date-ahead", NULL};

	switch (code) {
	case OPTION_SERVE:
		settings->service = (enum service)(1 << choice_argument(name, services));
		break;
	case OPTION_FAULT:
		settings->support_fault = (enum support_fault)choice_argument(name, faults);
		break;
	case OPTION_ADVERTISEMENTS:
		settings->assets.advertisements = optarg;
		break;
	case OPTION_PAGE:
		settings->assets.page = optarg;
		break;
	case OPTION_PIPELINE:
		settings->assets.pipeline = optarg;
		break;
	case OPTION_WORKERS:
		settings->workers = (uint32_t)number_argument(name, 1, 32);
		break;
	case OPTION_RESULTS:
		settings->results = (uint32_t)number_argument(name, 1, 64);
		break;
	case OPTION_LOGIN_TIMEOUT:
		settings->login_timeout = seconds_argument(name);
		break;
	case OPTION_IDLE_TIMEOUT:
		settings->idle_timeout = seconds_argument(name);
		break;
	case OPTION_REQUEST_TIMEOUT:
		settings->request_timeout = seconds_argument(name);
		break;
	case OPTION_ANSWER_TIMEOUT:
		settings->answer_timeout = seconds_argument(name);
		break;
	case OPTION_KEYS:
		settings->keys = optarg;
		break;
	case OPTION_KEYVALUE:
		settings->keyvalue_socket = optarg;
		break;
	case OPTION_SINGLE_SESSION:
		settings->single_session = true;
		break;
	case OPTION_HELP:
		fputs(USAGE, stdout);
		exit(fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	default:
		exit(EXIT_FAILURE); /* getopt_long has said what is wrong */
	}
}

static void
parse_options(struct settings *settings, int argc, char **argv)
{
	int code, index = 0;

	while ((code = getopt_long(argc, argv, "", OPTIONS, &index)) != -1)
		apply_option(settings, code, OPTIONS[index].name);
	if (optind < argc)
		misused("unexpected argument ", argv[optind]);
	if (settings->assets.advertisements == NULL || settings->assets.page == NULL)
		misused("--advertisements and --page are needed", "");
	if (settings->assets.pipeline == NULL)
		misused("--pipeline is needed", "");
}

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
#define SESSION_STACK ((size_t)48 << 10)

/* Does here, once, what every worker would otherwise do again. */
static void
prepare_for_forking(void)
{
	time_t now = 0;
	struct tm parts;

	gmtime_r(&now, &parts); /* reads the time zone's file, which a worker may not open */
	/* Otherwise jansson would open /dev/urandom, possibly during a session. */
	json_object_seed(randombytes_random() | 1);
	http_prepare();
	shai_reserve(SESSION_HEAP, SESSION_STACK);
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

	parse_options(&settings, argc, argv);
	if (sodium_init() < 0)
		misused("libsodium cannot be initialised", "");
	if (!assets_load(&assets, &settings.assets, reason, sizeof reason) ||
	    !load_keys(&keys, &settings, reason, sizeof reason)) {
		fprintf(stderr, "syse-frontend: %s\n", reason);
		return EXIT_FAILURE;
	}
	worker.settings = &settings;
	worker.assets = &assets;
	worker.keys = &keys;
	prepare_for_forking();
	status = zygote_run(&worker);
	/*
	 * A worker has no work for exit handlers, and each page that they touch would
	 * cost a copy.
	 */
	_exit(status);
}

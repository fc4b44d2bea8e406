/* SPDX-License-Identifier: BSD-2-Clause */
#include "options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char USAGE[] =
    "usage: syse-frontend --page FILE --advertisements FILE [OPTION]...\n"
    "       syse-frontend --page FILE --serve support [OPTION]...\n"
    "       syse-frontend --page FILE --serve interests --topics FILE [OPTION]...\n"
    "\n"
    "The front end of Sys-E: keeps forked workers ready, each of which serves one\n"
    "user's session over HTTP. The monitor starts it and gives it its\n"
    "descriptors.\n"
    "\n"
    "  --serve SERVICE          what to serve: search (when not given); support, which shows\n"
    "                           employees users' documents, each after an entry in the log of\n"
    "                           accesses; interests, which turns histories into topics\n"
    "  --page FILE              the search page; pages of the other services have its style\n"
    "  --advertisements FILE    of search: lines \"topic: text\"; \"#\" begins a comment\n"
    "  --topics FILE            of interests: lines \"topic: word word …\"\n"
    "  --fault FAULT            what the service does wrong, to see it stopped: none; of\n"
    "                           support skip-entry, forge-entry, date-ahead; of interests\n"
    "                           query-as-topic\n"
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
    "example: syse-frontend --page page.html --advertisements advertisements.txt\n";

/* As enum fault has them, and which service can have each. */
static const char *const FAULTS[] = {
    "none", "skip-entry", "forge-entry", "date-ahead", "query-as-topic", NULL};
static const unsigned FAULTY[] = {
    SERVE_ALL, SERVE_SUPPORT, SERVE_SUPPORT, SERVE_SUPPORT, SERVE_INTERESTS};

enum option_code {
	OPTION_SERVE = 1,
	OPTION_FAULT,
	OPTION_ADVERTISEMENTS,
	OPTION_PAGE,
	OPTION_TOPICS,
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
    {"topics", required_argument, NULL, OPTION_TOPICS},
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

/* Applies an option that says what is served. Returns whether it is one. */
static bool
apply_service_option(struct settings *settings, int code, const char *name)
{
	static const char *const services[] = {"search", "support", "interests", NULL};

	switch (code) {
	case OPTION_SERVE:
		settings->service = (enum service)(1 << choice_argument(name, services));
		return true;
	case OPTION_FAULT:
		settings->fault = (enum fault)choice_argument(name, FAULTS);
		return true;
	case OPTION_TOPICS:
		settings->assets.topics = optarg;
		return true;
	case OPTION_ADVERTISEMENTS:
		settings->assets.advertisements = optarg;
		return true;
	case OPTION_PAGE:
		settings->assets.page = optarg;
		return true;
	case OPTION_PIPELINE:
		settings->assets.pipeline = optarg;
		return true;
	default:
		return false;
	}
}

static void
apply_option(struct settings *settings, int code, const char *name)
{
	if (apply_service_option(settings, code, name))
		return;
	switch (code) {
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

/* Ends the program unless what is given is what the service needs. */
static void
check_service(const struct settings *settings)
{
	const struct asset_sources *assets = &settings->assets;

	if (assets->page == NULL)
		misused("--page is needed", "");
	if ((settings->service == SERVE_SEARCH) != (assets->advertisements != NULL))
		misused("--advertisements is needed to serve search, and is for it alone", "");
	if ((settings->service == SERVE_INTERESTS) != (assets->topics != NULL))
		misused("--topics is needed to serve interests, and is for it alone", "");
	if ((FAULTY[settings->fault] & (unsigned)settings->service) == 0)
		misused("the service that --serve names has no fault ", FAULTS[settings->fault]);
}

void
options_parse(struct settings *settings, int argc, char **argv)
{
	int code, index = 0;

	while ((code = getopt_long(argc, argv, "", OPTIONS, &index)) != -1)
		apply_option(settings, code, OPTIONS[index].name);
	if (optind < argc)
		misused("unexpected argument ", argv[optind]);
	check_service(settings);
	if (settings->assets.pipeline == NULL)
		misused("--pipeline is needed", "");
}

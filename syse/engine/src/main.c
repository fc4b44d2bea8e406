/* SPDX-License-Identifier: BSD-2-Clause
 *
 * syse-engine: options and documents, then the service.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service.h"
#include "shai_wire.h"

static const char USAGE[] =
    "usage: syse-engine --documents DIRECTORY --queries PATH --results PATH [OPTION]...\n"
    "\n"
    "Answers Sys-E's queries with random documents that the user may read, in place of a\n"
    "search engine: its cost is known, and shows the cost of everything else. Prints\n"
    "\"ready\" when it serves, and ends when its pipes do.\n"
    "\n"
    "  --documents DIRECTORY   the documents; a file's name is its conduit's number\n"
    "  --queries PATH          pipes of queries, of slot 0 at PATH/0 and so on\n"
    "  --results PATH          descriptor channels, likewise\n"
    "  --checked-results PATH  their twins, whose every write asks the monitor\n"
    "                          (/shai/channel-checked/… for /shai/channel/…, or else PATH of\n"
    "                          --results)\n"
    "  --slots N               how many slots there are, 1 to 32 (32)\n"
    "  --busy-cycles N         how long each query keeps a processor busy, in cycles (0)\n"
    "  --fault NAME            fault injection: none, ignore-attributes or\n"
    "                          text-instead-of-ids (none)\n"
    "  --help                  this text\n"
    "\n"
    "example: syse-engine --documents /shai/view --queries /shai/pipe/queries\n"
    "                     --results /shai/channel/results\n";

#define CHANNELS "/shai/channel/"
#define CHECKED_CHANNELS "/shai/channel-checked/"

enum option_code {
	OPTION_DOCUMENTS = 1,
	OPTION_QUERIES,
	OPTION_RESULTS,
	OPTION_CHECKED_RESULTS,
	OPTION_SLOTS,
	OPTION_BUSY_CYCLES,
	OPTION_FAULT,
	OPTION_HELP
};

static const struct option OPTIONS[] = {
    {"documents", required_argument, NULL, OPTION_DOCUMENTS},
    {"queries", required_argument, NULL, OPTION_QUERIES},
    {"results", required_argument, NULL, OPTION_RESULTS},
    {"checked-results", required_argument, NULL, OPTION_CHECKED_RESULTS},
    {"slots", required_argument, NULL, OPTION_SLOTS},
    {"busy-cycles", required_argument, NULL, OPTION_BUSY_CYCLES},
    {"fault", required_argument, NULL, OPTION_FAULT},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static _Noreturn void
misused(const char *what, const char *detail)
{
	fprintf(stderr, "syse-engine: %s%s; see syse-engine --help\n", what, detail);
	exit(EXIT_FAILURE);
}

static unsigned long long
number_argument(const char *name, unsigned long long smallest, unsigned long long largest)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(optarg, &end, 10);
	if (errno == 0 && optarg[0] >= '0' && optarg[0] <= '9' && *end == '\0' &&
	    value >= smallest && value <= largest)
		return value;
	fprintf(stderr,
	    "syse-engine: --%s %s: a number from %llu to %llu is expected; see syse-engine "
	    "--help\n",
	    name, optarg, smallest, largest);
	exit(EXIT_FAILURE);
}

static enum fault
fault_argument(void)
{
	static const char *const names[] = {
	    [FAULT_NONE] = "none",
	    [FAULT_IGNORE_ATTRIBUTES] = "ignore-attributes",
	    [FAULT_TEXT_INSTEAD_OF_IDS] = "text-instead-of-ids",
	};

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(optarg, names[i]) == 0)
			return (enum fault)i;
	misused("this engine has no fault ", optarg);
}

static void
apply_option(struct service *service, const char **documents, int code, const char *name)
{
	switch (code) {
	case OPTION_DOCUMENTS:
		*documents = optarg;
		break;
	case OPTION_QUERIES:
		service->queries = optarg;
		break;
	case OPTION_RESULTS:
		service->channels.results = optarg;
		break;
	case OPTION_CHECKED_RESULTS:
		service->channels.checked = optarg;
		break;
	case OPTION_SLOTS:
		service->slots = (unsigned)number_argument(name, 1, SHAI_FD_CHANNEL_COUNT);
		break;
	case OPTION_BUSY_CYCLES:
		service->busy_cycles = number_argument(name, 0, ULLONG_MAX);
		break;
	case OPTION_FAULT:
		service->fault = fault_argument();
		break;
	case OPTION_HELP:
		fputs(USAGE, stdout);
		exit(fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	default:
		exit(EXIT_FAILURE); /* getopt_long has said what is wrong */
	}
}

/* Where the channels' twins are unless it is said. */
static const char *
twin_of(const char *results)
{
	static char twin[PATH_MAX];

	if (strncmp(results, CHANNELS, sizeof CHANNELS - 1) != 0)
		return results;
	snprintf(twin, sizeof twin, "%s%s", CHECKED_CHANNELS, results + sizeof CHANNELS - 1);
	return twin;
}

static const char *
parse_options(struct service *service, int argc, char **argv)
{
	const char *documents = NULL;
	int code, index = 0;

	while ((code = getopt_long(argc, argv, "", OPTIONS, &index)) != -1)
		apply_option(service, &documents, code, OPTIONS[index].name);
	if (optind < argc)
		misused("unexpected argument ", argv[optind]);
	if (documents == NULL || service->queries == NULL || service->channels.results == NULL)
		misused("--documents, --queries and --results are needed", "");
	if (service->channels.checked == NULL)
		service->channels.checked = twin_of(service->channels.results);
	return documents;
}

int
main(int argc, char **argv)
{
	static struct service service = {.slots = SHAI_FD_CHANNEL_COUNT};
	const char *documents = parse_options(&service, argc, argv);
	long answered;

	(void)signal(SIGPIPE, SIG_IGN); /* a session that has ended is an error of write(2) */
	if (documents_load(&service.documents, documents) != 0) {
		fprintf(stderr, "syse-engine: %s: %s\n", documents, strerror(errno));
		return EXIT_FAILURE;
	}
	if (service.documents.all.count == 0) {
		fprintf(stderr, "syse-engine: %s holds no documents: load the corpus first\n",
		    documents);
		return EXIT_FAILURE;
	}
	if (puts("ready") < 0 || fflush(stdout) != 0)
		fprintf(stderr, "syse-engine: say that it is ready: %s\n", strerror(errno));
	answered = service_run(&service);
	documents_release(&service.documents);
	if (answered < 0)
		return EXIT_FAILURE;
	fprintf(stderr, "syse-engine: all pipes have ended: %ld queries answered\n", answered);
	return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The real syse-engine passes open descriptors over a channel of shai.ko. The test is the
 * front end and the receivers: a context for each user, with grants for what the user may
 * read. Needs the module, and syse-engine beside this program. Prints a line for every
 * check; status 0 when all hold.
 */
#include <sys/types.h>
/* The others need the header above. */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lwc.h"

#define DOCUMENTS 6
#define BIT(conduit) (1u << (conduit))
#define NOTHING 0u
#define GONE UINT64_MAX /* the sender is gone */
#define PATIENCE_MILLISECONDS 120000

enum user {
	ALICE,
	BOB,
	STRANGER,
	USERS
};

static const struct {
	const char *owner, *visibility;
	unsigned readers; /* bits of users */
} documents[DOCUMENTS] = {
    {"alice", "private", BIT(ALICE)},
    {"bob", "private", BIT(BOB)},
    {"-", "public", BIT(ALICE) | BIT(BOB)},
    {"bob", "friends", BIT(ALICE) | BIT(BOB)},
    {"carol", "friends", 0},
    {"carol", "private", 0},
};

static char engine_path[1024], folder[] = "/tmp/passing.XXXXXX";
static struct stat status_of[DOCUMENTS];
static int receiving, sending; /* the channel's ends */
static int context_of[USERS];
static unsigned failures;

static void
check(const char *name, bool holds)
{
	(void)printf("%s  %s\n", holds ? "ok    " : "NOT OK", name);
	failures += !holds;
}

static int
variable(const char *name)
{
	uint64_t value = 0;
	size_t size = sizeof(value);

	if (sysctlbyname(name, &value, &size, NULL, 0) != 0)
		err(1, "%s: is shai.ko loaded?", name);
	return (int)value;
}

/* ------------------------------------------------------------- the receivers */

/* Tells which of the documents a descriptor is, and closes it; 0 if it is none, or writable. */
static unsigned
identify(int descriptor)
{
	struct stat status;
	unsigned found = 0;

	if (fstat(descriptor, &status) == 0 && (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_RDONLY)
		for (unsigned i = 0; i < DOCUMENTS; i++)
			if (status.st_dev == status_of[i].st_dev &&
			    status.st_ino == status_of[i].st_ino)
				found = BIT(i + 1);
	(void)close(descriptor);
	return found;
}

/* Receives one transfer, if there is one, in the current context. */
static uint64_t
receive(void)
{
	int descriptors[SHAI_TRANSFER_MAX];
	long count = syscall(
	    variable("shai.syscall.shai_receive"), receiving, descriptors, SHAI_TRANSFER_MAX);
	unsigned all = NOTHING;

	if (count < 0)
		return errno == EAGAIN ? NOTHING : GONE;
	for (long i = 0; i < count; i++) {
		unsigned one = identify(descriptors[i]);

		if (one == 0 || (all & one) != 0)
			return GONE - 1; /* what nobody expects */
		all |= one;
	}
	return all;
}

/* Is a user's context: receives when it is switched to, and says what. */
__attribute__((noreturn)) static void
be_receiver(void)
{
	struct lwc_message answer = {0};
	struct lwc_event event;

	for (;;) {
		answer.argument = receive();
		if (syscall(variable("shai.syscall.lwc_switch"), LWC_CALLER, &answer, &event) != 0)
			err(1, "switch back");
	}
}

static void
make_receiver(enum user user)
{
	/* A receiver does not keep the channel open. */
	const struct lwc_descriptors omitted = {sending, sending, LWC_OMIT, 0};
	const struct lwc_spec spec = {.version = LWC_VERSION,
	    .source = LWC_SELF,
	    .descriptors = &omitted,
	    .descriptor_count = 1};
	struct shai_conduit granted[DOCUMENTS];
	struct lwc_event event;
	int count = 0;

	if (syscall(variable("shai.syscall.lwc_create"), &spec, &event) != 0)
		err(1, "make a context");
	if (event.kind != LWC_EVENT_CREATED)
		be_receiver();
	context_of[user] = event.descriptor;
	for (unsigned i = 0; i < DOCUMENTS; i++)
		if ((documents[i].readers & BIT(user)) != 0)
			granted[count++] = (struct shai_conduit){.device = status_of[i].st_dev,
			    .file = status_of[i].st_ino,
			    .rights = SHAI_CONDUIT_READ};
	if (count > 0 &&
	    syscall(variable("shai.syscall.shai_grant"), event.descriptor, granted, count) != 0)
		err(1, "grant");
}

/* Waits until something is in the channel, and lets a user's context receive it. */
static uint64_t
received_by(enum user user)
{
	const struct lwc_message message = {.flags = LWC_CALL};
	struct pollfd readable = {.fd = receiving, .events = POLLIN};
	struct lwc_event event;

	if (poll(&readable, 1, PATIENCE_MILLISECONDS) != 1)
		errx(1, "the engine does not answer");
	if (syscall(variable("shai.syscall.lwc_switch"), context_of[user], &message, &event) != 0)
		err(1, "switch to a receiver");
	return event.argument;
}

/* ---------------------------------------------------------------- the engine */

static void
write_documents(void)
{
	char path[1024], text[256];

	for (unsigned i = 0; i < DOCUMENTS; i++) {
		int length =
		    snprintf(text, sizeof(text), "title: %u\nowner: %s\nvisibility: %s\n\ntext\n",
			i + 1, documents[i].owner, documents[i].visibility);
		int file;

		(void)snprintf(path, sizeof(path), "%s/view/%u", folder, i + 1);
		file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
		if (file < 0 || write(file, text, (size_t)length) != length || close(file) != 0 ||
		    stat(path, &status_of[i]) != 0)
			err(1, "%s", path);
	}
}

static void
make_folders(void)
{
	static const char *const names[] = {"view", "queries"};
	char path[1024];

	if (mkdtemp(folder) == NULL)
		err(1, "%s", folder);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		if (mkdir(path, 0700) != 0)
			err(1, "%s", path);
	}
	(void)snprintf(path, sizeof(path), "%s/queries/0", folder);
	if (mkfifo(path, 0600) != 0)
		err(1, "%s", path);
}

/* Starts the engine, whose channel is its standard input. Returns the pipe of queries. */
static int
start_engine(const char *fault, pid_t *engine)
{
	char view[1024], queries[1024], pipe_path[1024];
	int queries_pipe;

	(void)snprintf(view, sizeof(view), "%s/view", folder);
	(void)snprintf(queries, sizeof(queries), "%s/queries", folder);
	(void)snprintf(pipe_path, sizeof(pipe_path), "%s/queries/0", folder);
	*engine = fork();
	if (*engine == 0) {
		if (dup2(sending, STDIN_FILENO) == 0)
			(void)execl(engine_path, engine_path, "--documents", view, "--queries",
			    queries, "--results", "/dev/fd", "--slots", "1", "--fault", fault,
			    NULL);
		err(1, "%s", engine_path);
	}
	queries_pipe = open(pipe_path, O_WRONLY | O_CLOEXEC);
	if (*engine < 0 || queries_pipe < 0)
		err(1, "start the engine");
	return queries_pipe;
}

static void
ask(int queries, const char *user, const char *friends)
{
	char line[256];
	int length = snprintf(line, sizeof(line),
	    "{\"query\":1,\"user\":\"%s\",\"friends\":[%s],\"text\":\"t\",\"count\":64}\n", user,
	    friends);

	if (write(queries, line, (size_t)length) != length)
		err(1, "ask");
}

static int
end_engine(int queries, pid_t engine)
{
	int status;

	(void)close(queries);
	if (waitpid(engine, &status, 0) != engine)
		err(1, "wait for the engine");
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---------------------------------------------------------------- the checks */

static void
check_engine(void)
{
	int withheld = variable("shai.count.withheld");
	pid_t engine;
	int queries = start_engine("none", &engine);

	ask(queries, "alice", "\"bob\"");
	check("alice receives what she may read, open for reading",
	    received_by(ALICE) == (BIT(1) | BIT(3) | BIT(4)));
	ask(queries, "bob", "");
	check("bob receives what he may read", received_by(BOB) == (BIT(2) | BIT(3) | BIT(4)));
	check("nothing was withheld", variable("shai.count.withheld") == withheld);
	ask(queries, "bob", "");
	check("of an answer to bob alice receives what she may read, too",
	    received_by(ALICE) == (BIT(3) | BIT(4)));
	check("the rest was withheld", variable("shai.count.withheld") == withheld + 1);
	ask(queries, "alice", "\"bob\"");
	check("who was granted nothing receives nothing", received_by(STRANGER) == NOTHING);
	check("and nobody receives it later",
	    variable("shai.count.withheld") == withheld + 4 && receive() == NOTHING);
	check("the engine ends with its pipe", end_engine(queries, engine) == 0);
}

static void
check_broken_engine(void)
{
	int withheld = variable("shai.count.withheld");
	pid_t engine;
	int queries = start_engine("ignore-attributes", &engine);

	ask(queries, "alice", "");
	check("a broken engine sends alice everything: she receives what she may read",
	    received_by(ALICE) == (BIT(1) | BIT(3) | BIT(4)));
	check("bob's and carol's documents were withheld",
	    variable("shai.count.withheld") == withheld + 3);
	(void)end_engine(queries, engine);
}

static void
check_text(void)
{
	struct pollfd readable = {.fd = receiving, .events = POLLIN};
	pid_t engine;
	int queries = start_engine("text-instead-of-ids", &engine);

	ask(queries, "alice", "");
	check("an engine that writes text cannot", end_engine(queries, engine) == 1);
	check("nothing has come", poll(&readable, 1, 0) == 0);
}

int
main(int count, char **arguments)
{
	int ends[2];

	(void)count;
	(void)snprintf(engine_path, sizeof(engine_path), "%s/syse-engine", dirname(arguments[0]));
	make_folders();
	write_documents();
	if (syscall(variable("shai.syscall.shai_channel"), ends) != 0)
		err(1, "make a channel");
	receiving = ends[0];
	sending = ends[1];
	if (fcntl(receiving, F_SETFL, O_NONBLOCK) != 0)
		err(1, "make the channel non-blocking");
	for (enum user user = ALICE; user < USERS; user++)
		make_receiver(user);
	check_engine();
	check_broken_engine();
	check_text();
	(void)close(sending);
	check("without a sender the channel ends", received_by(ALICE) == GONE);
	return failures == 0 ? 0 : 1;
}

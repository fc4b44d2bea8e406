/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Workers and main tasks on FreeBSD, against a sandbox and monitor in the test: what
 * a session gets, what it does not, and that nothing of it is left for the next. Run
 * it once with shai.ko loaded and once without: sessions are then contexts, or
 * processes. Prints a line for every check; status 0 when all hold.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_sandbox.h"

/* tests/probe/probe_worker.c */
int probe_main(int count, char **arguments);

static unsigned failures;

static void
check(const char *name, bool holds)
{
	(void)printf("%s  %s\n", holds ? "ok    " : "NOT OK", name);
	failures += !holds;
}

/* Whether a session's answer begins with a text; with "", whether it hung up. */
static void
check_answer(struct fake_sandbox *fake, const char *name, const char *line, const char *expected)
{
	const char *answer = fake_say(fake, line);
	bool holds = strncmp(answer, expected, strlen(expected)) == 0 &&
		     (*expected == '\0') == (*answer == '\0');

	check(name, holds);
	if (!holds)
		(void)printf("        %s: \"%s\", expected \"%s\"\n", line, answer, expected);
}

static bool
module_is_loaded(void)
{
	int version;
	size_t size = sizeof(version);

	return sysctlbyname("shai.version", &version, &size, NULL, 0) == 0;
}

static void
begin_session(struct fake_sandbox *fake)
{
	fake_user(fake);
	EXPECT(strncmp(fake_say(fake, "session"), "session", 7) == 0);
}

static void
authenticate(struct fake_sandbox *fake)
{
	check_answer(fake, "authenticate", "authenticate alice 00", "bound worker(alice)");
}

/* ------------------------------------------------------------ what a session opens */

static void
opens_of_a_session(struct fake_sandbox *fake)
{
	char line[128];
	unsigned paths;

	check_answer(fake, "unbound: nothing of the view", "beneath 1/0/1", "error EACCES");
	check_answer(fake, "unbound: no conduit", "open 1", "error ENOTCONN");
	authenticate(fake);
	check_answer(fake, "its conduits open natively", "open 1 3", "opened 1 3, withheld 0");
	check("the monitor was not asked", fake->opens == 0);
	check_answer(fake, "a foreign one does not", "open 2", "opened, withheld 1");
	check("the monitor was asked about it", fake->opens == 1);
	check_answer(fake, "read", "read 5", "text document 5");
	check_answer(fake, "beneath the view", "beneath 1/0/1", "descriptor");
	check_answer(fake, "beneath the view, foreign", "beneath 2/0/2", "error EACCES");
	check_answer(fake, "beneath the view, the view", "beneath .", "error EACCES");
	check_answer(fake, "beneath the view, out of it", "beneath ../secret", "error EACCES");
	check_answer(
	    fake, "beneath the view, out of a class", "beneath 1/../2/0/2", "error EACCES");
	check_answer(fake, "by the view's path", "native " FAKE_PREFIX "/1/0/3", "descriptor");
	check_answer(
	    fake, "by the view's path, foreign", "native " FAKE_PREFIX "/2/0/2", "error EACCES");
	check("nobody was asked about the view", fake->paths == 0);
	(void)snprintf(line, sizeof(line), "native %s/allowed", fake->directory);
	check_answer(fake, "a path that the sandbox allows", line, "descriptor");
	paths = fake->paths;
	(void)snprintf(line, sizeof(line), "native %s/secret", fake->directory);
	check_answer(fake, "a path that it does not", line, "error EACCES");
	check("it was asked about both", paths == 1 && fake->paths == 2);
}

/* ------------------------------------------------------------------ the channel */

static void
send_transfer(struct fake_sandbox *fake, uint32_t query, size_t count)
{
	struct shai_transfer transfer = {.query = query};

	for (size_t i = 0; i < count; i++)
		transfer.conduit[i] = (uint32_t)i + 1;
	fake_channel_send(
	    fake, &transfer, offsetof(struct shai_transfer, conduit) + count * sizeof(uint32_t));
}

static void
channel_of_a_session(struct fake_sandbox *fake)
{
	send_transfer(fake, 7, 3);
	check_answer(fake, "the channel cannot be read", "raw", "error ENOTCAPABLE");
	check_answer(fake, "a transfer opens what it may", "receive 7", "opened 1 3, withheld 1");
	send_transfer(fake, 8, 1);
	send_transfer(fake, 9, 1);
	check_answer(fake, "an old answer is discarded", "receive 9", "opened 1, withheld 0");
}

/*
 * A record that is no transfer breaks the session, so each needs a session of its
 * own.
 */
static void
odd_transfers(struct fake_sandbox *fake)
{
	static const char text[sizeof(struct shai_transfer) + 1] = "bob's secret, and more of it";
	static const struct {
		const char *name;
		size_t length;
	} odd[] = {
	    {"too long a transfer", sizeof(text)}, {"a text", 29}, {"less than a transfer", 4}};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		begin_session(fake);
		authenticate(fake);
		fake_channel_send(fake, text, odd[i].length);
		check_answer(fake, odd[i].name, "receive 1",
		    "error EPROTO channel: cannot read"); /* the stub, not the library */
		(void)fake_say(fake, "quit");
		fake_session_over(fake, false);
	}
}

static int
zygote(void)
{
	return probe_main(1, (char *[]){"probe_worker", NULL});
}

/* ------------------------------------------------------------------- its end */

/* Two sessions of one worker, one after the other. */
static void
nothing_is_left(struct fake_sandbox *fake)
{
	char first[128], process[128], line[64];
	bool same;

	begin_session(fake);
	(void)snprintf(first, sizeof(first), "%s", fake_say(fake, "descriptors"));
	(void)snprintf(process, sizeof(process), "%s", fake_say(fake, "session"));
	(void)snprintf(line, sizeof(line), "descriptors %d", SHAI_FD_RESERVED_END);
	check("every worker was examined before it had a session", fake->workers != 0);
	check("a session has no descriptors of its stub", strcmp(first, line) == 0);
	(void)snprintf(line, sizeof(line), "socket %d", SHAI_FD_REQUESTS);
	check_answer(fake, "and does not reach the sandbox", line, "error");
	opens_of_a_session(fake);
	channel_of_a_session(fake);
	(void)snprintf(line, sizeof(line), "seek %d 8", SHAI_FD_CLASSES);
	check_answer(fake, "an offset", line, "from 0");
	check_answer(fake, "it has moved", line, "from 8");
	check_answer(fake, "no process of its own", "again in a child",
	    module_is_loaded() ? "error EPERM" : "error EAGAIN");
	check_answer(fake, "remember", "remember alice-was-here", "remembered");
	check_answer(fake, "recall", "recall", "recalled alice-was-here");
	/* A name that goes through the stub. */
	check_answer(fake, "native", "native /tmp/of-alice", "error EACCES");
	/* The kernel refuses to a context what would wait for the next one. */
	check_answer(fake, "a timer and a signal", "leave",
	    module_is_loaded() ? "error EPERM leave" : "left");
	check_answer(fake, "they are there, or were refused", "left",
	    module_is_loaded() ? "timer none, signal none" : "timer runs, signal pending");
	check("its directories are open", strcmp(first, fake_say(fake, "descriptors")) != 0);
	check_answer(fake, "quit", "quit", "");
	fake_session_over(fake, false);
	check("the monitor was told", fake->resets == 1);

	begin_session(fake);
	check_answer(fake, "the next remembers nothing", "recall", "recalled nothing");
	(void)snprintf(line, sizeof(line), "seek %d 8", SHAI_FD_CLASSES);
	check_answer(fake, "nor does the file's offset", line, "from 0");
	check_answer(fake, "no timer, no signal", "left", "timer none, signal none");
	check_answer(fake, "nor does its stub", "search of-alice", "absent");
	check_answer(fake, "what it remembers is found", "remember of-bob", "remembered");
	check_answer(fake, "what it remembers is found", "search of-bob", "found");
	check_answer(fake, "and has nothing open", "descriptors", first);
	check_answer(fake, "nor anything of the view", "beneath 1/0/1", "error EACCES");
	same = strcmp(process, fake_say(fake, "session")) == 0;
	check(module_is_loaded() ? "they were contexts of one process"
				 : "they were processes of their own",
	    same == module_is_loaded());
	(void)fake_say(fake, "quit");
	fake_session_over(fake, false);
}

static void
ends_of_a_session(struct fake_sandbox *fake)
{
	unsigned resets;

	begin_session(fake);
	authenticate(fake);
	check_answer(fake, "killed in a session", "crash", "");
	fake_session_over(fake, true);
	begin_session(fake);
	check_answer(fake, "the worker or its next serves on", "recall", "recalled nothing");
	resets = fake->resets;
	(void)fake_say(fake, "linger"); /* a process may still get to say that it does */
	fake_session_over(fake, false);
	check("done, and lives on: ended", fake->resets == resets + 1);
	begin_session(fake);
	fake_end_session(fake);
	check_answer(fake, "ended by the sandbox", "native /etc/passwd", "");
	fake_session_over(fake, true);
	begin_session(fake);
	check_answer(fake, "what the monitor does not know", "register search", "error ECONNRESET");
	(void)fake_say(fake, "quit");
	fake_session_over(fake, true); /* its worker ends with it */
	begin_session(fake);
	check_answer(fake, "serves on", "mode", "mode 2");
	(void)fake_say(fake, "quit");
	fake_session_over(fake, false);
}

static void
sessions(void)
{
	struct fake_sandbox fake;

	fake_start(&fake, zygote, SHAI_MODE_SHAI);
	nothing_is_left(&fake);
	odd_transfers(&fake);
	ends_of_a_session(&fake);
	fake_stop(&fake);
}

/* ------------------------------------------------------------------ checked writes */

static void
checked_writes(void)
{
	struct fake_sandbox fake;

	fake_start(&fake, zygote, SHAI_MODE_DYNAMIC);
	fake.may_write = true;
	fake_user(&fake);
	check_answer(&fake, "dynamic: an answer that is allowed", "mode", "mode 1");
	check("dynamic: the sandbox was asked", fake.sends == 1);
	check_answer(
	    &fake, "dynamic: authenticate", "authenticate alice 00", "bound worker(alice)");
	check_answer(&fake, "dynamic: every open asks", "open 1", "opened, withheld 1");
	check_answer(&fake, "dynamic: no view", "beneath 1/0/1", "error EACCES");
	fake.may_write = false;
	check_answer(&fake, "dynamic: an answer that is not", "mode", "");
	fake_session_over(&fake, false);
	fake_stop(&fake);
}

/* ------------------------------------------------------------------- main tasks */

static const char *main_directory;

static bool
opens(const char *name, int flags)
{
	char path[128];
	int descriptor;

	(void)snprintf(path, sizeof(path), "%s/%s", main_directory, name);
	descriptor = open(path, flags, 0644);
	if (descriptor < 0)
		return false;
	(void)close(descriptor);
	return true;
}

static int
main_task(void)
{
	struct stat status;
	char path[128], text[16] = "";
	int file;

	(void)snprintf(path, sizeof(path), "%s/allowed", main_directory);
	file = open(path, O_RDONLY);
	check("task: an open that is allowed", file >= 0);
	check("task: it can be read", read(file, text, 7) == 7 && strcmp(text, "allowed") == 0);
	check("task: not to be inherited unless asked", (fcntl(file, F_GETFD) & FD_CLOEXEC) == 0);
	check("task: an open that is not", !opens("secret", O_RDONLY) && errno == EACCES);
	check("task: nor for writing", !opens("allowed", O_RDWR) && errno == EACCES);
	check("task: stat", stat(path, &status) == 0 && status.st_size == 8);
	check("task: access", access(path, R_OK) == 0 && access(path, F_OK) == 0);
	check("task: access to write, refused", access(path, W_OK) == -1 && errno == EACCES);
	check("task: access to execute, none", access(path, X_OK) == -1 && errno == EACCES);
	check("task: access, refused", access("/etc", R_OK) == -1 && errno == EACCES);
	file = open(FAKE_WRITABLE_PREFIX "/new", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	check("task: beneath its own directory", file >= 0 && write(file, "x", 1) == 1);
	check("task: not out of it",
	    openat(FAKE_WRITABLE, "../secret", O_RDONLY) == -1 && errno == EACCES);
	check("task: a checked write", write(SHAI_FD_CONNECTION_CHECKED, "hello", 5) == 5);
	check("task: other refusals stay", kill(getppid(), 0) == -1 && errno == ECAPMODE);
	return failures != 0;
}

static void
main_tasks(void)
{
	struct fake_sandbox fake;
	char directory[32], text[8] = "";

	(void)snprintf(directory, sizeof(directory), "/tmp/shai-%d", (int)getpid());
	main_directory = directory;
	fake_start(&fake, main_task, SHAI_MODE_SHAI);
	fake.may_write = true;
	check("the task's own checks", fake_wait(&fake) == 0);
	check("asked of its paths", fake.paths == 9 && fake.sends == 1);
	check("what was written arrived",
	    read(fake.client, text, 5) == 5 && strcmp(text, "hello") == 0);
	fake_stop(&fake);
}

int
main(void)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	(void)printf("shai.ko is loaded: %s\n", module_is_loaded() ? "yes" : "no");
	main_tasks();
	sessions();
	checked_writes();
	(void)printf("%u failed\n", failures);
	return failures != 0;
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A worker that does what its user tells it, for tests of a monitor and its
 * sandbox from the inside. The zygote keeps WORKERS workers alive; a session is a
 * text conversation over the user's connection, one command a line, one answer a
 * line:
 *
 *	nonce                      the session's nonce in hexadecimal
 *	authenticate NAME HEX      bind the session: "bound INSTANCE" or "error E reason"
 *	open ID ...                open conduits: "opened ID ..., withheld N"
 *	receive QUERY              take the transfer for the session's QUERYth query: as open
 *	read ID                    the first line of a conduit, through shai_open
 *	native PATH                open(2) by plain path: "descriptor" or "error E"
 *	beneath CLASS/PATH         openat(2) relative to the view's descriptor number and to
 *	                           every directory that the session holds
 *	raw                        readv(2) on the channel's number
 *	query TEXT                 write a line to the query pipe
 *	get KEY | push KEY VALUE   a command to the key-value store; its first reply line
 *	write CONDUIT CONTENT      shai_write: "written" or "error E reason". In CONTENT \n is a
 *	                           line break, @NOW and @LATER are times
 *	replace CONDUIT CONTENT    the same, with SHAI_WRITE_REPLACE
 *	choices ID                 "offered CONDUIT NONCE | POLICY IN FORCE | POLICY | ..." or
 *				   "error E reason"
 *	choose ID HEX POLICY       pass a signed choice on: "chosen" or "error E reason"
 *	mode                       the session's mode
 *	session                    "session region R slot N process P"
 *	remember WORD | recall     keep a word in this process; give it back
 *	search WORD                look for one in static data: "found" or "absent"
 *	leave | left               leave a timer and a pending signal; what is left of them
 *	descriptors                how many are open: "descriptors N"
 *	seek NUMBER OFFSET         move a file's offset: "from OFFSET", where it was, or "error E"
 *	socket NUMBER              whether a number is a socket: "socket" or "error E"
 *	count NUMBER | counted     spoil the session's counters behind libshai's back; read them
 *	register NAME              shai_register in the middle of a session
 *	again [in a child|thread]  accept4(2) for another user, behind libshai's back
 *	print TEXT                 to standard output and error: "printed"
 *	linger                     end the session for the monitor only, and live on
 *	crash                      die with SIGABRT
 *	quit                       end the session
 *
 * Started as "probe_worker register NAME ..." it is no worker: it registers under
 * each name in turn and prints what comes of it. Started as "probe_worker write CONDUIT CONTENT
 * ..." it writes each content to its conduit, in the same way as a session.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "probe_worker.h"

#ifndef WORKERS
#define WORKERS 3
#endif

struct shai_session session;

void
answer(const char *format, ...)
{
	va_list arguments;
	char line[LINE];

	va_start(arguments, format);
	vsnprintf(line, sizeof(line) - 1, format, arguments);
	va_end(arguments);
	strcat(line, "\n");
	for (size_t done = 0, size = strlen(line); done < size;) {
		ssize_t n = write(session.connection, line + done, size - done);

		if (n <= 0)
			_exit(3);
		done += (size_t)n;
	}
}

void
answer_error(const char *reason)
{
	answer("error %s %s", error_name(errno), reason);
}

static void
answer_nonce(__attribute__((unused)) char *rest)
{
	char nonce[SHAI_NONCE_HEX_SIZE];

	shai_nonce_hex(session.nonce, nonce);
	answer("nonce %s", nonce);
}

static void
answer_mode(__attribute__((unused)) char *rest)
{
	answer("mode %d", (int)session.mode);
}

static void
answer_session(__attribute__((unused)) char *rest)
{
	answer("session region %s slot %u process %d", session.region, session.slot, (int)getpid());
}

static void
ask_for_socket(char *rest)
{
	int type;
	socklen_t size = sizeof(type);

	if (getsockopt((int)strtol(rest, NULL, 10), SOL_SOCKET, SO_TYPE, &type, &size) == -1)
		answer_error("");
	else
		answer("socket");
}

static void
seek(char *rest)
{
	int number = (int)strtol(rest, &rest, 10);
	long long was = lseek(number, 0, SEEK_CUR);

	if (was == -1 || lseek(number, strtoll(rest, NULL, 10), SEEK_SET) == -1)
		answer_error("seek");
	else
		answer("from %lld", was);
}

static void
print(char *rest)
{
	if (dprintf(STDOUT_FILENO, "%s\n", rest) < 0 || dprintf(STDERR_FILENO, "%s\n", rest) < 0)
		answer_error("print");
	else
		answer("printed");
}

static void
register_as(char *rest)
{
	if (shai_register(rest, 0) == -1)
		answer_error(shai_reason());
	else
		answer("registered");
}

static void
crash(__attribute__((unused)) char *rest)
{
	abort();
}

static const struct {
	const char *name;
	void (*run)(char *rest);
} commands[] = {
    {"nonce", answer_nonce},
    {"authenticate", probe_authenticate},
    {"open", probe_open},
    {"receive", probe_receive},
    {"read", probe_read},
    {"native", probe_native},
    {"beneath", probe_beneath},
    {"raw", probe_raw},
    {"query", probe_query},
    {"get", probe_get},
    {"push", probe_push},
    {"write", probe_write},
    {"replace", probe_replace},
    {"choices", probe_choices},
    {"choose", probe_choose},
    {"mode", answer_mode},
    {"session", answer_session},
    {"remember", probe_remember},
    {"recall", probe_recall},
    {"search", probe_search},
    {"leave", probe_leave},
    {"left", probe_left},
    {"descriptors", probe_descriptors},
    {"seek", seek},
    {"socket", ask_for_socket},
    {"count", probe_count},
    {"counted", probe_counted},
    {"register", register_as},
    {"again", probe_again},
    {"print", print},
    {"linger", probe_linger},
    {"crash", crash},
};

static void
command(char *line)
{
	char *rest = strchr(line, ' ');

	if (rest != NULL)
		*rest++ = '\0';
	else
		rest = line + strlen(line);
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(line, commands[i].name) == 0) {
			commands[i].run(rest);
			return;
		}
	answer("error EINVAL unknown command %s", line);
}

static void
work(void)
{
	char line[LINE];
	FILE *input;

	if (shai_accept(&session) == -1)
		_exit(2);
	input = fdopen(session.connection, "r");
	while (input != NULL && fgets(line, sizeof(line), input) != NULL) {
		line[strcspn(line, "\r\n")] = '\0';
		if (strcmp(line, "quit") == 0)
			break;
		command(line);
	}
	shai_reset(&session);
	_exit(0);
}

/* Registers under each name in turn. */
static int
play_impostor(char **names)
{
	for (; *names != NULL; names++)
		if (shai_register(*names, 0) == -1)
			printf("%s: %s %s\n", *names, error_name(errno), shai_reason());
		else
			printf("%s: registered\n", *names);
	return (0);
}

static int
play_writer(char **arguments)
{
	for (; arguments[0] != NULL && arguments[1] != NULL; arguments += 2)
		if (probe_write_content(NULL, arguments[0], arguments[1], 0) == -1)
			printf("%s: %s %s\n", arguments[0], error_name(errno), shai_reason());
		else
			printf("%s: written\n", arguments[0]);
	return (0);
}

int
main(int count, char **arguments)
{
	pid_t pid;

	tzset(); /* reads a file, which is no part of what a session does */
	if (count > 2 && strcmp(arguments[1], "register") == 0)
		return (play_impostor(arguments + 2));
	if (count > 2 && strcmp(arguments[1], "write") == 0)
		return (play_writer(arguments + 2));

	for (unsigned slot = 0;; slot++) {
		/* A supervisor's workers are not this process's children. */
		if (slot >= WORKERS && wait(NULL) == -1 && errno != ECHILD)
			return (1);
		pid = shai_fork_worker(slot % WORKERS);
		if (pid == 0)
			work();
		if (pid == -1)
			return (1);
		if (slot == 0)
			dprintf(STDOUT_FILENO, "ready\n");
	}
}

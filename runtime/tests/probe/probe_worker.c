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
 *	mode                       the session's mode
 *	session                    "session region R slot N process P"
 *	remember WORD | recall     keep a word in this process; give it back
 *	search WORD                look for one in static data: "found" or "absent"
 *	leave | left               leave a timer and a pending signal; what is left of them
 *	descriptors                how many are open: "descriptors N"
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
 * each name in turn and prints what comes of it.
 */
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#ifdef __linux__
#include <sched.h>
#endif
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shai.h"

#ifdef __GLIBC__
#define error_name strerrorname_np
#else
#include "error_name.h"
#endif

#ifndef WORKERS
#define WORKERS 3
#endif
#define LINE 4096
#define DESCRIPTORS 1024

static struct shai_session session;
static char remembered[64];

static void
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

static void
answer_error(const char *reason)
{
	answer("error %s %s", error_name(errno), reason);
}

static void
authenticate(char *name, const char *hex)
{
	uint8_t signature[SHAI_SIGNATURE_SIZE] = {0};

	for (size_t i = 0; hex != NULL && i < sizeof(signature) && strlen(hex) >= 2 * i + 2; i++)
		sscanf(hex + 2 * i, "%2hhx", &signature[i]);
	if (shai_authenticate(&session, name, signature) == -1)
		answer_error(shai_reason());
	else
		answer("bound %s", session.instance);
}

static void
answer_opened(struct shai_document *documents, ssize_t count)
{
	char line[LINE - 64] = "opened";

	if (count == -1) {
		answer_error(shai_reason());
		return;
	}
	for (ssize_t i = 0; i < count; i++) {
		snprintf(
		    line + strlen(line), sizeof(line) - strlen(line), " %u", documents[i].conduit);
		close(documents[i].descriptor);
	}
	answer("%s, withheld %u", line, session.withheld);
}

/* Opens a file of the view by the directory of its class, or from another one upwards. */
static int
open_beneath(const char *path)
{
	uint32_t class = (uint32_t)strtoul(path, NULL, 10); /* first: it may set errno */
	int descriptor = openat(SHAI_FD_CAPABILITY, path, O_RDONLY);

	for (uint32_t i = 0; descriptor == -1 && class != 0 && i < session.directory_count; i++) {
		char name[LINE];

		if (session.classes[i] == class)
			snprintf(name, sizeof(name), "%s", strchr(path, '/') + 1);
		else
			snprintf(name, sizeof(name), "../%s", path);
		descriptor = openat(session.directories[i], name, O_RDONLY);
	}
	return descriptor;
}

static size_t
numbers(char *list, uint32_t *out, size_t max)
{
	size_t count = 0;

	for (char *word = strtok(list, " "); word != NULL && count < max; word = strtok(NULL, " "))
		out[count++] = (uint32_t)strtoul(word, NULL, 10);
	return (count);
}

static void
open_conduits(char *list)
{
	struct shai_document documents[SHAI_BATCH_MAX];
	uint32_t ids[SHAI_BATCH_MAX];
	size_t count = numbers(list, ids, SHAI_BATCH_MAX);

	answer_opened(documents, shai_open(&session, ids, count, documents, SHAI_BATCH_MAX));
}

static void
read_conduit(char *id)
{
	struct shai_document document;
	uint32_t number = (uint32_t)strtoul(id, NULL, 10);
	char text[256] = "";

	if (shai_open(&session, &number, 1, &document, 1) != 1) {
		answer("error %s withheld %u", error_name(EACCES), session.withheld);
		return;
	}
	if (read(document.descriptor, text, sizeof(text) - 1) == -1)
		answer_error("read");
	else
		answer("text %.*s", (int)strcspn(text, "\n"), text);
	close(document.descriptor);
}

static void
answer_descriptor(int descriptor)
{
	if (descriptor == -1) {
		answer_error("");
		return;
	}
	close(descriptor);
	answer("descriptor");
}

static void
read_raw(void)
{
	char record[sizeof(struct shai_transfer)];

	struct iovec whole = {record, sizeof(record)};

	if (readv(SHAI_FD_CHANNEL, &whole, 1) == -1)
		answer_error("");
	else
		answer("record");
}

/* Both are the process's, and outlive what has made them unless somebody sees to it. */
static void
leave_behind(void)
{
	static const struct itimerval late = {{0, 0}, {1000, 0}};
	sigset_t held;

	sigemptyset(&held);
	sigaddset(&held, SIGUSR1);
	if (setitimer(ITIMER_REAL, &late, NULL) == -1 ||
	    sigprocmask(SIG_BLOCK, &held, NULL) == -1 || raise(SIGUSR1) != 0)
		answer_error("leave");
	else
		answer("left");
}

static void
answer_left(void)
{
	struct itimerval timer = {{0, 0}, {0, 0}};
	sigset_t pending;

	sigemptyset(&pending);
	getitimer(ITIMER_REAL, &timer);
	sigpending(&pending);
	answer("timer %s, signal %s", timer.it_value.tv_sec == 0 ? "none" : "runs",
	    sigismember(&pending, SIGUSR1) ? "pending" : "none");
}

static void
count_descriptors(void)
{
	unsigned count = 0;

	for (int number = 0; number < DESCRIPTORS; number++)
		count += fcntl(number, F_GETFD) != -1;
	answer("descriptors %u", count);
}

static void
search(const char *word)
{
	extern char edata[], end[];

	answer(
	    memmem(edata, (size_t)(end - edata), word, strlen(word)) == NULL ? "absent" : "found");
}

static void
ask_for_socket(const char *number)
{
	int type;
	socklen_t size = sizeof(type);

	if (getsockopt((int)strtol(number, NULL, 10), SOL_SOCKET, SO_TYPE, &type, &size) == -1)
		answer_error("");
	else
		answer("socket");
}

static void
answer_counted(void)
{
	answer("counted %ju", (uintmax_t)shai_counters()->fast_opens);
}

static void
count(const char *number)
{
	struct shai_counters *counters = (struct shai_counters *)(uintptr_t)shai_counters();

	counters->fast_opens = strtoull(number, NULL, 0);
	answer_counted();
}

/* One command in RESP, and the first line of what comes back. */
static void
key_value(const char *verb, char *arguments)
{
	char request[LINE], reply[LINE] = "";
	char *key = strtok(arguments, " "), *value = strtok(NULL, " ");
	int size;

	if (session.keyvalue == -1 || key == NULL) {
		answer("error ENOTCONN no key-value connection");
		return;
	}
	if (value == NULL)
		size = snprintf(request, sizeof(request), "*2\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
		    strlen(verb), verb, strlen(key), key);
	else
		size = snprintf(request, sizeof(request),
		    "*3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n", strlen(verb), verb,
		    strlen(key), key, strlen(value), value);
	if (write(session.keyvalue, request, (size_t)size) != size ||
	    read(session.keyvalue, reply, sizeof(reply) - 1) <= 0) {
		answer_error("key-value");
		return;
	}
	answer("reply %.*s", (int)strcspn(reply, "\r\n"), reply);
}

static int
accept_and_answer(void *unused)
{
	int connection = accept4(SHAI_FD_LISTEN, NULL, NULL, SOCK_CLOEXEC);

	(void)unused;
	if (connection == -1)
		answer_error("");
	else
		answer("connection %d", connection);
	return (0);
}

/*
 * Makes a thread as pthread_create(3) does, without the parts that make threads
 * useful.
 */
static int
start_thread(int (*run)(void *))
{
#ifdef __linux__
	static char stack[1 << 16] __attribute__((aligned(16)));

	return (clone(run, stack + sizeof(stack),
	    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
	    NULL));
#else
	(void)run;
	errno = ENOSYS;
	return (-1);
#endif
}

/* A second user for the same process: what a worker without a reset would do. */
static void
accept_again(const char *where)
{
	pid_t child = 0;

	if (strcmp(where, "in a thread") == 0) {
		if (start_thread(accept_and_answer) == -1)
			answer_error("");
		return;
	}
	if (strcmp(where, "in a child") == 0)
		child = fork();
	if (child > 0)
		waitpid(child, NULL, 0);
	else if (child == -1)
		answer_error("");
	else
		accept_and_answer(NULL);
	if (child == 0 && *where != '\0')
		_exit(0);
}

/* Tells the monitor that the session is over and keeps everything it had. */
static void
print(const char *text)
{
	if (dprintf(STDOUT_FILENO, "%s\n", text) < 0 || dprintf(STDERR_FILENO, "%s\n", text) < 0)
		answer_error("print");
	else
		answer("printed");
}

static void
linger(void)
{
	struct shai_reset reset = {.header = {SHAI_WIRE_VERSION, SHAI_RESET, sizeof(reset), 0}};

	if (send(SHAI_FD_MONITOR, &reset, sizeof(reset), 0) == -1)
		answer_error("reset");
	else
		answer("lingering");
	pause();
}

static void
register_as(const char *name)
{
	if (shai_register(name) == -1)
		answer_error(shai_reason());
	else
		answer("registered");
}

static void
command(char *line)
{
	char nonce[SHAI_NONCE_HEX_SIZE];
	struct shai_document documents[SHAI_BATCH_MAX];
	char *rest = strchr(line, ' ');

	if (rest != NULL)
		*rest++ = '\0';
	else
		rest = line + strlen(line);
	if (strcmp(line, "nonce") == 0) {
		shai_nonce_hex(session.nonce, nonce);
		answer("nonce %s", nonce);
	} else if (strcmp(line, "authenticate") == 0) {
		char *name = strtok(rest, " ");

		authenticate(name == NULL ? rest : name, strtok(NULL, " "));
	} else if (strcmp(line, "open") == 0)
		open_conduits(rest);
	else if (strcmp(line, "read") == 0)
		read_conduit(rest);
	else if (strcmp(line, "receive") == 0)
		answer_opened(
		    documents, shai_channel_receive(&session,
				   session.first_query + (uint32_t)strtoul(rest, NULL, 10),
				   documents, SHAI_BATCH_MAX));
	else if (strcmp(line, "native") == 0)
		answer_descriptor(open(rest, O_RDONLY));
	else if (strcmp(line, "beneath") == 0)
		answer_descriptor(open_beneath(rest));
	else if (strcmp(line, "raw") == 0)
		read_raw();
	else if (strcmp(line, "query") == 0)
		answer(dprintf(session.query_pipe, "%s\n", rest) > 0 ? "written" : "error");
	else if (strcmp(line, "get") == 0)
		key_value("GET", rest);
	else if (strcmp(line, "push") == 0)
		key_value("LPUSH", rest);
	else if (strcmp(line, "mode") == 0)
		answer("mode %d", (int)session.mode);
	else if (strcmp(line, "session") == 0)
		answer("session region %s slot %u process %d", session.region, session.slot,
		    (int)getpid());
	else if (strcmp(line, "remember") == 0) {
		snprintf(remembered, sizeof(remembered), "%s", rest);
		answer("remembered");
	} else if (strcmp(line, "recall") == 0)
		answer("recalled %s", *remembered == '\0' ? "nothing" : remembered);
	else if (strcmp(line, "descriptors") == 0)
		count_descriptors();
	else if (strcmp(line, "leave") == 0)
		leave_behind();
	else if (strcmp(line, "left") == 0)
		answer_left();
	else if (strcmp(line, "search") == 0)
		search(rest);
	else if (strcmp(line, "socket") == 0)
		ask_for_socket(rest);
	else if (strcmp(line, "count") == 0)
		count(rest);
	else if (strcmp(line, "counted") == 0)
		answer_counted();
	else if (strcmp(line, "register") == 0)
		register_as(rest);
	else if (strcmp(line, "again") == 0)
		accept_again(rest);
	else if (strcmp(line, "print") == 0)
		print(rest);
	else if (strcmp(line, "linger") == 0)
		linger();
	else if (strcmp(line, "crash") == 0)
		abort();
	else
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
		if (shai_register(*names) == -1)
			printf("%s: %s %s\n", *names, error_name(errno), shai_reason());
		else
			printf("%s: registered\n", *names);
	return (0);
}

int
main(int count, char **arguments)
{
	pid_t pid;

	if (count > 2 && strcmp(arguments[1], "register") == 0)
		return (play_impostor(arguments + 2));

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

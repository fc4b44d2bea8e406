/* SPDX-License-Identifier: BSD-2-Clause
 *
 * A task without sessions that raises its taint, and tries to keep what it may not. Each
 * argument is a command; each prints one line:
 *
 *	open NAME FLAGS PATH     open(2); FLAGS are of r, w, c (create), x (it must not exist)
 *	view NAME PATH           an open beneath the view, which the monitor answers
 *	native NAME FLAGS N PATH openat(2) relative to descriptor N, and nothing if it is refused
 *	write|read|close NAME    a line; the first line; close(2)
 *	dup NAME NEW             dup(2)
 *	copies NAME N            dup(2), N times
 *	at NAME N                dup2(2) to number N
 *	size NAME                ftruncate(2) to a page
 *	map|protect|poke|unmap NAME   a shared mapping (map: as the file was opened; map-read: of
 *	                         one page, to read), mprotect(2) to write, a byte, munmap(2)
 *	gift NAME                vmsplice(2) a page into it
 *	number NAME N            use descriptor N by a name
 *	fork                     fork(2)
 *	child | reap             a child that stays; its end
 *	pass NAME | take NAME    sends it over a socket pair of its own; receives it
 *	later NAME | finish      a write that the kernel makes (aio(4)); waits for its end: FreeBSD
 *	pipe NAME                the writing end of a pipe of its own
 *	cheat INSTANCE HOW       registers; HOW: places nothing, opens more, is early: FreeBSD
 *	context NAME             makes a context of shai.ko
 *	count | counted          handles SIGUSR1; how often it has come
 *	thread | join            start a thread; end it
 *	raise INSTANCE [close]   shai_register
 *	both INSTANCE            two threads register at the same time, behind libshai's back
 *	send BYTES               a record of zeros on the monitor's socket
 *	say TEXT                 prints it
 *	hold N PATH              open PATH N times for writing, and keep it open
 *	time N A B               register N times, as A and as B in turn: microseconds of each, the
 *median
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "raising_calls.h"
#include "shai.h"

#define NAMES 32
#define PAGE 4096
#define MOST_TIMES 10000

static struct {
	char name[16];
	int descriptor;
	int flags;
	char *mapping;
} held[NAMES];

static char page[PAGE] __attribute__((aligned(PAGE)));

static int
place(const char *name)
{
	for (int i = 0; i < NAMES; i++) {
		if (held[i].name[0] == '\0')
			snprintf(held[i].name, sizeof(held[i].name), "%s", name);
		if (strcmp(held[i].name, name) == 0)
			return i;
	}
	exit(2);
}

static void
result(long value, const char *good)
{
	if (value < 0)
		printf("error %s\n", error_name(errno));
	else
		printf("%s\n", good);
}

static int
flags_of(const char *text)
{
	int flags = strchr(text, 'w') == NULL   ? O_RDONLY
		    : strchr(text, 'r') != NULL ? O_RDWR
						: O_WRONLY;

	flags |= strchr(text, 'x') != NULL ? O_EXCL : 0;
	return flags | (strchr(text, 'c') != NULL ? O_CREAT : 0);
}

static void
keep(const char *name, int descriptor, int flags)
{
	int i = place(name);

	held[i].descriptor = descriptor;
	held[i].flags = flags;
	result(descriptor, "opened");
}

static void
map(int i, int protection)
{
	void *mapped = mmap(NULL, PAGE, protection, MAP_SHARED, held[i].descriptor, 0);

	held[i].mapping = mapped == MAP_FAILED ? NULL : mapped;
	result(mapped == MAP_FAILED ? -1 : 0, "mapped");
}

static void
read_line(int descriptor)
{
	char line[256];
	ssize_t size = read(descriptor, line, sizeof(line) - 1);

	if (size >= 0) {
		line[size] = '\0';
		line[strcspn(line, "\n")] = '\0';
	}
	result(size, line);
}

static void
fork_one(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	result(child, "forked");
	if (child > 0)
		waitpid(child, NULL, 0);
}

static pthread_mutex_t ended = PTHREAD_MUTEX_INITIALIZER;
static pthread_t thread;

static void *
wait_for_end(void *unused)
{
	pthread_mutex_lock(&ended);
	pthread_mutex_unlock(&ended);
	return unused;
}

static void
start_thread(void)
{
	pthread_mutex_lock(&ended);
	errno = pthread_create(&thread, NULL, wait_for_end, NULL);
	result(errno == 0 ? 0 : -1, "started");
}

static void
join(void)
{
	pthread_mutex_unlock(&ended);
	result(pthread_join(thread, NULL) == 0 ? 0 : -1, "joined");
}

static void
raise_taint(const char *instance, const char *how)
{
	uint32_t flags = how != NULL && strcmp(how, "close") == 0 ? SHAI_REGISTER_CLOSE : 0;

	if (shai_register(instance, flags) == 0)
		printf("raised\n");
	else
		printf("error %s %s\n", error_name(errno), shai_reason());
}

/* Sends the request that it gets, and stays until the mutex is free. */
static void *
send_request(void *request)
{
	if (send(SHAI_FD_MONITOR, request, sizeof(struct shai_register), 0) < 0)
		exit(2);
	return wait_for_end(NULL);
}

static void
both(const char *instance)
{
	static struct shai_register request;
	static union {
		struct shai_registered head;
		char bytes[SHAI_WIRE_MAX];
	} answer;

	request.header = (struct shai_header){SHAI_WIRE_VERSION, SHAI_REGISTER, sizeof(request), 1};
	snprintf(request.instance, sizeof(request.instance), "%s", instance);
	pthread_mutex_lock(&ended);
	if (pthread_create(&thread, NULL, send_request, &request) != 0 ||
	    send(SHAI_FD_MONITOR, &request, sizeof(request), 0) < 0)
		exit(2);
	pthread_mutex_unlock(&ended);
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++) {
		if (recv(SHAI_FD_MONITOR, &answer, sizeof(answer), 0) < 0)
			exit(2);
		printf("%s%s", i == 0 ? "" : " and ",
		    answer.head.status == 0 ? "raised" : error_name(answer.head.status));
	}
	printf("\n");
}

static void
copy(int descriptor, int count)
{
	int copies = 0;

	while (copies < count && dup(descriptor) >= 0)
		copies++;
	printf("%d copies\n", copies);
}

static void
hold(int count, const char *path)
{
	int opened = 0;

	while (opened < count && open(path, O_WRONLY | O_CREAT, 0600) >= 0)
		opened++;
	printf("%d open\n", opened);
}

static int
ascending(const void *a, const void *b)
{
	double difference = *(const double *)a - *(const double *)b;

	return difference > 0 ? 1 : difference < 0 ? -1 : 0;
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void
measure(int times, const char *first, const char *second)
{
	static double took[MOST_TIMES];

	for (int i = 0; i < times && i < MOST_TIMES; i++) {
		double begun = now();

		if (shai_register(i % 2 == 0 ? first : second, 0) != 0) {
			printf("error %s %s\n", error_name(errno), shai_reason());
			return;
		}
		took[i] = now() - begun;
	}
	qsort(took, (size_t)times, sizeof(took[0]), ascending);
	printf("%.1f microseconds\n", took[times / 2]);
}

static void
on_held(const char *command, int i)
{
	int descriptor = held[i].descriptor;
	bool writes = held[i].flags != O_RDONLY;

	if (strcmp(command, "write") == 0)
		result(write(descriptor, "a line\n", 7), "written");
	else if (strcmp(command, "read") == 0)
		read_line(descriptor);
	else if (strcmp(command, "close") == 0)
		result(close(descriptor), "closed");
	else if (strcmp(command, "size") == 0)
		result(ftruncate(descriptor, PAGE), "sized");
	else if (strcmp(command, "map") == 0)
		map(i, PROT_READ | (writes ? PROT_WRITE : 0));
	else if (strcmp(command, "map-read") == 0)
		map(i, PROT_READ);
	else if (strcmp(command, "protect") == 0)
		result(mprotect(held[i].mapping, PAGE, PROT_READ | PROT_WRITE), "protected");
	else if (strcmp(command, "poke") == 0)
		result(held[i].mapping[0] = '!', "poked");
	else if (strcmp(command, "unmap") == 0)
		result(munmap(held[i].mapping, PAGE), "unmapped");
	else if (strcmp(command, "gift") == 0)
		result(give_page(descriptor, page, sizeof(page)), "given");
	else
		exit(2);
}

static volatile sig_atomic_t signals;

static void
count_signal(int number)
{
	(void)number;
	signals++;
}

static void
own_pipe(const char *name)
{
	int both[2];

	keep(name, pipe(both) == 0 ? both[1] : -1, O_WRONLY);
}

static void
register_cheating(const char *instance, const char *how)
{
	union {
		struct shai_registered head;
		char bytes[SHAI_WIRE_MAX];
	} answer;

	if (cheat(instance, how) != 0 || recv(SHAI_FD_MONITOR, &answer, sizeof(answer), 0) < 0)
		printf("error %s\n", error_name(errno));
	else if (answer.head.status == 0)
		printf("raised\n");
	else
		printf("error %s %s\n", error_name(answer.head.status), answer.head.reason);
}

/* Commands that are about nothing that is open. Returns false for another one. */
static bool
obey_alone(const char *command, const char *name)
{
	if (strcmp(command, "child") == 0)
		result(start_child(), "forked");
	else if (strcmp(command, "reap") == 0)
		result(end_child(), "reaped");
	else if (strcmp(command, "pass") == 0)
		result(pass_descriptor(held[place(name)].descriptor), "passed");
	else if (strcmp(command, "take") == 0)
		keep(name, take_descriptor(), O_WRONLY);
	else if (strcmp(command, "later") == 0)
		result(write_later(held[place(name)].descriptor), "begun");
	else if (strcmp(command, "finish") == 0)
		result(finish_writing(), "written");
	else if (strcmp(command, "pipe") == 0)
		own_pipe(name);
	else if (strcmp(command, "context") == 0)
		keep(name, make_context(), O_RDONLY);
	else if (strcmp(command, "count") == 0)
		result(signal(SIGUSR1, count_signal) == SIG_ERR ? -1 : 0, "counting");
	else if (strcmp(command, "counted") == 0)
		printf("%d\n", (int)signals);
	else
		return false;
	return true;
}

static void
obey(char *line)
{
	char *word[5] = {NULL};
	int count = 0;
	int flags;

	for (char *next = strtok(line, " "); next != NULL && count < 5; next = strtok(NULL, " "))
		word[count++] = next;
	if (obey_alone(word[0], word[1]))
		return;
	if (strcmp(word[0], "cheat") == 0)
		register_cheating(word[1], word[2]);
	else if (strcmp(word[0], "fork") == 0)
		fork_one();
	else if (strcmp(word[0], "thread") == 0)
		start_thread();
	else if (strcmp(word[0], "join") == 0)
		join();
	else if (strcmp(word[0], "raise") == 0)
		raise_taint(word[1], word[2]);
	else if (strcmp(word[0], "both") == 0)
		both(word[1]);
	else if (strcmp(word[0], "send") == 0)
		result(send(SHAI_FD_MONITOR, page, (size_t)atoi(word[1]), 0), "sent");
	else if (strcmp(word[0], "say") == 0)
		printf("%s\n", word[1]);
	else if (strcmp(word[0], "hold") == 0)
		hold(atoi(word[1]), word[2]);
	else if (strcmp(word[0], "time") == 0)
		measure(atoi(word[1]), word[2], word[3]);
	else if (strcmp(word[0], "open") == 0) {
		flags = flags_of(word[2]);
		keep(word[1], open(word[3], flags, 0600), flags & O_ACCMODE);
	} else if (strcmp(word[0], "view") == 0)
		keep(word[1], open_in_view(word[2]), 0);
	else if (strcmp(word[0], "native") == 0) {
		flags = flags_of(word[2]);
		keep(word[1], open_natively(atoi(word[3]), word[4], flags), flags & O_ACCMODE);
	} else if (strcmp(word[0], "dup") == 0)
		keep(word[2], dup(held[place(word[1])].descriptor), held[place(word[1])].flags);
	else if (strcmp(word[0], "copies") == 0)
		copy(held[place(word[1])].descriptor, atoi(word[2]));
	else if (strcmp(word[0], "at") == 0)
		result(dup2(held[place(word[1])].descriptor, atoi(word[2])), "opened");
	else if (strcmp(word[0], "number") == 0)
		keep(word[1], atoi(word[2]), O_WRONLY);
	else
		on_held(word[0], place(word[1]));
}

int
main(int count, char **arguments)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < count; i++)
		obey(arguments[i]);
	return 0;
}

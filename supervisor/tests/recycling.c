/* SPDX-License-Identifier: BSD-2-Clause */
#include "recycling.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rollback.h"

#define WARM_UP 5 /* rounds */
#define STACK_SIZE (64 * 1024)

/* One of the two processes, and what it works with. */
static struct process {
	struct setting setting;
	struct samples *samples; /* shared with the parent */
	unsigned char *pages;
	struct sockaddr_un address; /* of its own listening socket */
	socklen_t address_size;
	int turns; /* the parent says when it is this process's turn, and hears when that is over */
	int round;
	double ended; /* the time when a session ended */
} self;

static double
now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e6 + (double)time.tv_nsec / 1e3;
}

/* Returns whether there is one more round. */
static bool
await_turn(void)
{
	char turn;

	return read(self.turns, &turn, sizeof(turn)) == sizeof(turn);
}

static void
end_turn(void)
{
	MUST(write(self.turns, "", 1) == 1);
	self.round++;
}

/* Stores a sample, but for rounds that warm up. */
static void
store(double *samples, double value)
{
	if (self.round >= WARM_UP)
		samples[self.round - WARM_UP] = value;
}

static void
write_pages(void)
{
	for (size_t i = 0; i < self.setting.pages; i++)
		self.pages[i * SHAI_ROLLBACK_PAGE]++;
}

static void
open_descriptors(void)
{
	for (int i = 0; i < self.setting.descriptors; i++)
		MUST(fcntl(STDIN_FILENO, F_DUPFD, SHAI_ROLLBACK_OPENED) >= 0);
}

/* Lets a client connect, so that accept4 does not wait. */
static void
connect_client(void)
{
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	MUST(client >= 0);
	MUST(connect(client, (struct sockaddr *)&self.address, self.address_size) == 0);
	MUST(close(client) == 0);
}

/* Ends a session of a worker that is rolled back. */
static _Noreturn void
roll_back(void)
{
	connect_client();
	self.ended = now();
	__asm__ volatile("jmp *%0" : : "r"(SHAI_ROLLBACK_CODE));
	__builtin_unreachable();
}

/* A session of a worker that is rolled back. It begins where the roll-back code ends. */
_Noreturn void session(int connection);

_Noreturn void
session(int connection)
{
	double begun = now(), written;

	store(self.samples->time[ROLLED_BACK], begun - self.ended);
	MUST(close(connection) == 0);
	MUST(self.pages[0] == 1 && fcntl(SHAI_ROLLBACK_OPENED, F_GETFD) < 0);
	end_turn();
	if (!await_turn())
		_exit(0);
	begun = now();
	write_pages();
	written = now();
	open_descriptors();
	store(self.samples->opening, now() - written);
	store(self.samples->writing, written - begun);
	roll_back();
}

void resume(void);

__asm__(".text\nresume:\n\tmov %eax, %edi\n\tcall session\n");

/* Maps the code, and a state of which all but the pages keeps what a session changes. */
static void
seal(void)
{
	size_t length = self.setting.pages * SHAI_ROLLBACK_PAGE;
	size_t size = SHAI_ROLLBACK_SNAPSHOT + length;
	struct shai_rollback_state *state = mmap((void *)SHAI_ROLLBACK_STATE, size,
	    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	char *stack = malloc(STACK_SIZE);
	int code = rollback_open();

	MUST(state != MAP_FAILED && stack != NULL && code >= 0);
	MUST(mmap((void *)SHAI_ROLLBACK_CODE, SHAI_ROLLBACK_CODE_SIZE, PROT_READ | PROT_EXEC,
		 MAP_PRIVATE | MAP_FIXED_NOREPLACE, code, 0) != MAP_FAILED);
	MUST(madvise(state, size, MADV_NOHUGEPAGE) == 0);
	state->range_count = 1;
	state->range[0] = (struct shai_rollback_range){
	    (uintptr_t)self.pages, SHAI_ROLLBACK_STATE + SHAI_ROLLBACK_SNAPSHOT, length};
	state->stack = ((uintptr_t)stack + STACK_SIZE) & ~(uintptr_t)15;
	state->resume = (uintptr_t)resume;
	__asm__("mov %%fs:0, %0" : "=r"(state->thread));
	__asm__ volatile("xsave64 (%0)"
			 :
			 : "r"((char *)state + SHAI_ROLLBACK_VECTORS), "a"(-1), "d"(-1)
			 : "memory");
	memcpy((char *)state + SHAI_ROLLBACK_SNAPSHOT, self.pages, length);
	MUST(mprotect(state, size, PROT_READ) == 0);
}

/* Forks a worker for one session, and stores the time until it has ended. */
static void
fork_worker(enum kind kind)
{
	double started;
	pid_t child;

	connect_client();
	started = now();
	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		MUST(accept4(SHAI_ROLLBACK_LISTEN, NULL, NULL, SOCK_CLOEXEC) >= 0);
		if (kind == FORKED_WRITTEN)
			write_pages();
		open_descriptors();
		_exit(0);
	}
	MUST(waitpid(child, NULL, 0) == child);
	store(self.samples->time[kind], now() - started);
}

static _Noreturn void
run_worker(void)
{
	seal();
	roll_back();
}

static _Noreturn void
run_zygote(void)
{
	for (end_turn(); await_turn(); end_turn()) {
		fork_worker(FORKED);
		fork_worker(FORKED_WRITTEN);
	}
	_exit(0);
}

/* Makes the pages, all written, and a listening socket at the number that the code uses. */
static void
prepare(void)
{
	socklen_t size = sizeof(self.address.sun_family); /* the kernel chooses the name */
	size_t length = self.setting.pages * SHAI_ROLLBACK_PAGE;
	int listener = socket(AF_UNIX, SOCK_STREAM, 0);

	self.address.sun_family = AF_UNIX;
	MUST(listener >= 0 && bind(listener, (struct sockaddr *)&self.address, size) == 0);
	self.address_size = sizeof(self.address);
	MUST(getsockname(listener, (struct sockaddr *)&self.address, &self.address_size) == 0);
	MUST(listen(listener, 1) == 0 && dup2(listener, SHAI_ROLLBACK_LISTEN) >= 0);
	self.pages = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(self.pages != MAP_FAILED && madvise(self.pages, length, MADV_NOHUGEPAGE) == 0);
	memset(self.pages, 1, length);
}

/* Starts a process that waits for its turns. Returns the other end of its socket. */
static int
start(void (*run)(void), struct setting setting, struct samples *samples)
{
	int ends[2];
	pid_t child;

	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
	child = fork();
	MUST(child >= 0);
	if (child == 0) {
		self.setting = setting;
		self.samples = samples;
		self.turns = fcntl(ends[1], F_DUPFD, SHAI_ROLLBACK_LISTEN + 1);
		MUST(self.turns >= 0 && close(ends[0]) == 0);
		prepare();
		run(); /* does not return */
	}
	MUST(close(ends[1]) == 0);
	return ends[0];
}

static void
take_turn(int process)
{
	char over;

	MUST(write(process, "", 1) == 1);
	if (read(process, &over, sizeof(over)) != sizeof(over))
		errx(1, "a process of the measurement has ended");
}

void
recycling_measure(struct setting setting, struct samples *samples)
{
	const int process[] = {
	    start(run_worker, setting, samples), start(run_zygote, setting, samples)};
	char ready;

	for (size_t i = 0; i < COUNT(process); i++)
		MUST(read(process[i], &ready, sizeof(ready)) == sizeof(ready));
	for (size_t round = 1; round < WARM_UP + ROUNDS; round++)
		for (size_t i = 0; i < COUNT(process); i++)
			take_turn(process[(round + i) % COUNT(process)]);
	for (size_t i = 0; i < COUNT(process); i++)
		MUST(close(process[i]) == 0);
	while (wait(NULL) > 0)
		continue;
	for (size_t i = 0; i < ROUNDS; i++) {
		samples->time[FORKED][i] -= samples->opening[i];
		samples->time[FORKED_WRITTEN][i] -= samples->opening[i] + samples->writing[i];
	}
}

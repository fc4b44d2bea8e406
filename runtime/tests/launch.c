/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Starts a program as a task's launcher would, under a monitor that answers its
 * registration and nothing else:
 *
 *	launch LIBRARY VIEW INDEX PROGRAM ARGUMENT…
 *
 * preloads LIBRARY and maps "/shai/view" onto VIEW (for reading), "/index" onto
 * INDEX, "/shai/pipe/queries/0" onto a pipe with two lines in it and then its end,
 * and "/shai/channel/results/0" onto a channel. Afterwards it prints what the
 * program sent on the channel, and ends with the program's status. With LAUNCH_ANSWER
 * set to "refuse" or "garbage" in the environment, the registration goes wrong.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "fake_monitor.h"
#include "records.h"

#define OWN_NUMBERS 200 /* for the launcher's ends: above the reserved ones */

struct answer {
	struct shai_registered head;
	struct shai_capability entry[4];
};

struct task {
	int monitor[2];
	int queries[2];
	int results[2];
};

static void
place(int descriptor, int number)
{
	EXPECT(dup2(descriptor, number) == number);
}

static void
raise_numbers(int pair[2])
{
	for (int i = 0; i < 2; i++) {
		int raised = fcntl(pair[i], F_DUPFD_CLOEXEC, OWN_NUMBERS);

		EXPECT(raised >= 0 && close(pair[i]) == 0);
		pair[i] = raised;
	}
}

static void
start(const struct task *task, char **arguments)
{
	place(task->monitor[0], SHAI_FD_MONITOR);
	place(open(arguments[2], O_PATH | O_DIRECTORY), SHAI_FD_CAPABILITY);
	place(open(arguments[3], O_PATH | O_DIRECTORY), SHAI_FD_CAPABILITY + 1);
	place(task->queries[0], SHAI_FD_PIPE);
	place(task->results[1], SHAI_FD_CHANNEL);
	EXPECT(setenv(SHAI_ENVIRONMENT_INSTANCE, "search", 1) == 0);
	EXPECT(setenv("LD_PRELOAD", arguments[1], 1) == 0);
	EXPECT(execv(arguments[4], arguments + 4) == 0);
}

static void
answer_registration(int monitor)
{
	static const struct answer valid = {
	    .head = {.header = {SHAI_WIRE_VERSION, SHAI_REGISTERED, sizeof(valid), 1},
		.mode = SHAI_MODE_SHAI,
		.capability_count = 4},
	    .entry = {{"/shai/view", 16, SHAI_KIND_DIRECTORY, SHAI_RIGHT_READ},
		{"/index", 17, SHAI_KIND_DIRECTORY, SHAI_RIGHT_READ | SHAI_RIGHT_WRITE},
		{"/shai/pipe/queries/0", 32, SHAI_KIND_PIPE, SHAI_RIGHT_READ},
		{"/shai/channel/results/0", 96, SHAI_KIND_CHANNEL, SHAI_RIGHT_WRITE}}};
	const char *wanted = getenv("LAUNCH_ANSWER");
	struct answer answer = valid;
	struct shai_register request;
	size_t length = sizeof(answer);

	if (recv(monitor, &request, sizeof(request), 0) != sizeof(request))
		return;
	EXPECT(strcmp(request.instance, "search") == 0);
	if (wanted != NULL && strcmp(wanted, "refuse") == 0) {
		answer.head.status = 13;
		answer.head.capability_count = 0;
		length = sizeof(answer.head);
		answer.head.header.size = (uint32_t)length;
		strcpy(answer.head.reason, "as told");
	} else if (wanted != NULL) {
		answer.head.header.version++;
	}
	EXPECT(send(monitor, &answer, length, 0) == (ssize_t)length);
}

static void
print_transfers(int channel)
{
	struct shai_transfer transfer;
	ssize_t length;

	while ((length = recv(channel, &transfer, sizeof(transfer), 0)) > 0) {
		(void)printf("transfer query %u:", transfer.query);
		for (ssize_t i = 0; i < (length - 8) / 4; i++)
			(void)printf(" %u", transfer.conduit[i]);
		(void)printf("\n");
	}
}

int
main(int argc, char **argv)
{
	static const char lines[] = "{\"query\":1,\"text\":\"aback\"}\n{\"query\":2}\n";
	struct task task;
	int status = -1;
	pid_t child;

	EXPECT(argc >= 5);
	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, task.monitor) == 0);
	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, task.results) == 0);
	EXPECT(pipe(task.queries) == 0);
	raise_numbers(task.monitor);
	raise_numbers(task.results);
	raise_numbers(task.queries);
	EXPECT(write(task.queries[1], lines, sizeof(lines) - 1) == sizeof(lines) - 1);
	child = fork();
	if (child == 0)
		start(&task, argv);
	EXPECT(close(task.queries[1]) == 0 && close(task.monitor[0]) == 0);
	EXPECT(close(task.results[1]) == 0);
	answer_registration(task.monitor[1]);
	print_transfers(task.results[0]);
	EXPECT(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

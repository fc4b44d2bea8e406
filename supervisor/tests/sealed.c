/* SPDX-License-Identifier: BSD-2-Clause */
#include "sealed.h"

#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"
#include "packets.h"

#define CONNECTION 7

void
sealed_start(struct sealed *worker, const uint8_t code[SHAI_ROLLBACK_CODE_SIZE])
{
	struct pollfd came = {.events = POLLIN};
	struct descriptors received;
	char message[16];
	int ends[2];

	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	worker->pid = fork();
	EXPECT(worker->pid >= 0);
	if (worker->pid == 0)
		sealed_work(code, ends[1]);
	(void)close(ends[1]);
	worker->process = (int)syscall(SYS_pidfd_open, worker->pid, 0);
	came.fd = ends[0];
	EXPECT(poll(&came, 1, PATIENCE_MILLISECONDS) == 1);
	EXPECT(packet_receive(ends[0], message, sizeof(message), &received) == 8);
	worker->listener = descriptors_take(&received, 0);
	(void)close(ends[0]);
}

void
sealed_stop(struct sealed *worker)
{
	EXPECT(kill(worker->pid, SIGKILL) == 0);
	EXPECT(waitpid(worker->pid, NULL, 0) == worker->pid);
	(void)close(worker->process);
	(void)close(worker->listener);
}

enum sealed_sign
sealed_await(const struct sealed *worker, int connection)
{
	struct pollfd ready[] = {{.fd = connection, .events = POLLIN},
	    {.fd = worker->process, .events = POLLIN}, {.fd = worker->listener, .events = POLLIN}};
	char byte;

	EXPECT(poll(ready, COUNT(ready), PATIENCE_MILLISECONDS) > 0);
	if (ready[0].revents != 0)
		return recv(connection, &byte, 1, MSG_PEEK) > 0 ? SEALED_SAYS : SEALED_ENDED;
	return (ready[2].revents & POLLIN) != 0 ? SEALED_WAITS : SEALED_ENDED;
}

static uint64_t
call_of(const struct sealed *worker)
{
	struct seccomp_notif call;

	memset(&call, 0, sizeof(call));
	EXPECT(ioctl(worker->listener, SECCOMP_IOCTL_NOTIF_RECV, &call) == 0);
	return call.id;
}

int
sealed_connect(const struct sealed *worker)
{
	struct seccomp_notif_addfd place = {.id = call_of(worker),
	    .flags = SECCOMP_ADDFD_FLAG_SETFD | SECCOMP_ADDFD_FLAG_SEND,
	    .newfd = CONNECTION};
	int ends[2];

	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
	place.srcfd = (uint32_t)ends[1];
	EXPECT(ioctl(worker->listener, SECCOMP_IOCTL_NOTIF_ADDFD, &place) == CONNECTION);
	(void)close(ends[1]);
	return ends[0];
}

void
sealed_refuse(const struct sealed *worker, int error)
{
	struct seccomp_notif_resp answer = {.id = call_of(worker), .error = -error};

	EXPECT(ioctl(worker->listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0);
}

void
sealed_forsake(struct sealed *worker)
{
	(void)close(worker->listener);
	worker->listener = -1;
}

int
sealed_memory_at(const struct sealed *worker, uint64_t start)
{
	char path[64], line[256], head[32];
	bool found = false;
	int size = -1;
	FILE *maps;

	(void)snprintf(path, sizeof(path), "/proc/%d/smaps", (int)worker->pid);
	(void)snprintf(head, sizeof(head), "%llx-", (unsigned long long)start);
	maps = fopen(path, "re");
	EXPECT(maps != NULL);
	while (size < 0 && fgets(line, sizeof(line), maps) != NULL) {
		found = found || strncmp(line, head, strlen(head)) == 0;
		if (found)
			(void)sscanf(line, "Anonymous: %d kB", &size);
	}
	(void)fclose(maps);
	return size;
}

/* What the processor adds to an XSAVE area. */
static void
strip(uint8_t vectors[SHAI_ROLLBACK_VECTORS_SIZE])
{
	uint64_t present;

	memset(vectors + 28, 0, 4); /* which bits of MXCSR there are */
	memcpy(&present, vectors + 512, sizeof(present));
	present &= SEALED_COMPONENTS;
	memcpy(vectors + 512, &present, sizeof(present));
}

const char *
sealed_check(int connection, const struct sealed_report *expected)
{
	static struct sealed_report report;
	static char problem[64];

	if (recv(connection, &report, sizeof(report), 0) != sizeof(report))
		return "something else than a report";
	for (int i = 0; i < SEALED_REGISTERS; i++)
		if (report.registers[i] != expected->registers[i]) {
			(void)snprintf(problem, sizeof(problem), "register %d is %#llx", i,
			    (unsigned long long)report.registers[i]);
			return problem;
		}
	if (report.flags != expected->flags)
		return "flags";
	if (report.fs_base != expected->fs_base || report.gs_base != expected->gs_base)
		return "segment bases";
	if (memcmp(report.selectors, expected->selectors, sizeof(report.selectors)) != 0)
		return "selectors";
	if (report.memory != expected->memory)
		return "memory";
	if (report.opened != expected->opened)
		return "descriptors";
	strip(report.vectors);
	for (size_t i = 0; i < sizeof(report.vectors); i++)
		if (report.vectors[i] != expected->vectors[i]) {
			(void)snprintf(
			    problem, sizeof(problem), "vectors at %zu: %#x", i, report.vectors[i]);
			return problem;
		}
	return NULL;
}

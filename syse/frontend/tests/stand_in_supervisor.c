/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Stands in for the supervisor of a task: starts a front end whose forks it permits one by
 * one, and whose workers are its own children.
 *
 * usage: stand_in_supervisor WORKERS PROGRAM [ARGUMENT]...
 *
 * A fork waits until fewer than WORKERS are alive. SIGTERM goes to the zygote. With the
 * zygote's end its workers are killed, and its exit status is this program's. A worker that
 * fails is reported on standard error.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LISTENER 900 /* above the numbers of the task */
#define SIGNALS 901

static struct {
	pid_t zygote;
	long most;   /* workers */
	__u64 held;  /* the fork that waits; 0 for none */
	bool ending; /* the zygote has got SIGTERM */
} task;

static void
must(bool condition, const char *what)
{
	if (!condition) {
		perror(what);
		_exit(99);
	}
}

/* Installs the filter: forks wait for an answer through the listener, which is returned. */
static int
install_filter(void)
{
	struct sock_filter program[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof program / sizeof program[0], .filter = program};

	must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "no new privileges");
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
	    SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, &filter);
}

static _Noreturn void
become_task(int parent, char **arguments)
{
	int listener = install_filter();
	sigset_t none;
	char done;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	must(listener >= 0, "install the filter");
	must(write(parent, &listener, sizeof listener) == sizeof listener, "tell the listener");
	must(read(parent, &done, 1) == 1, "wait for the parent");
	execv(arguments[0], arguments);
	must(false, arguments[0]);
	_exit(99);
}

/* Starts the task, and takes its listener. */
static void
start(char **arguments)
{
	int ends[2], listener;

	must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, "socketpair");
	task.zygote = fork();
	must(task.zygote >= 0, "fork");
	if (task.zygote == 0)
		become_task(ends[1], arguments);
	must(read(ends[0], &listener, sizeof listener) == sizeof listener, "learn the listener");
	listener = pidfd_getfd(pidfd_open(task.zygote, 0), listener, 0);
	must(dup3(listener, LISTENER, O_CLOEXEC) == LISTENER, "take the listener");
	must(write(ends[0], "", 1) == 1, "let the task run");
	must(close_range(3, LISTENER - 1, 0) == 0, "close the task's descriptors");
}

/* Calls visit for each worker; returns their number. */
static long
each_worker(void (*visit)(pid_t worker))
{
	FILE *children = fopen("/proc/thread-self/children", "re");
	long count = 0;
	int child;

	must(children != NULL, "list the children");
	while (fscanf(children, "%d", &child) == 1) {
		if (child == task.zygote)
			continue;
		count++;
		if (visit != NULL)
			visit(child);
	}
	(void)fclose(children);
	return count;
}

static void
kill_worker(pid_t worker)
{
	(void)kill(worker, SIGKILL);
}

static void
answer(int error)
{
	struct seccomp_notif_resp response = {.id = task.held,
	    .error = -error,
	    .flags = error == 0 ? SECCOMP_USER_NOTIF_FLAG_CONTINUE : 0};

	(void)ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_SEND, &response);
	task.held = 0;
}

static void
receive_fork(void)
{
	struct seccomp_notif call = {0};

	if (ioctl(LISTENER, SECCOMP_IOCTL_NOTIF_RECV, &call) == 0)
		task.held = call.id;
}

static _Noreturn void
finish(int status)
{
	(void)each_worker(kill_worker);
	while (wait(NULL) > 0)
		continue;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static void
reap(void)
{
	int status;
	pid_t child;

	while ((child = waitpid(-1, &status, WNOHANG)) > 0) {
		if (child == task.zygote)
			finish(status);
		if (status != 0)
			fprintf(
			    stderr, "stand-in: worker %d ended with status %#x\n", child, status);
	}
}

int
main(int argc, char **argv)
{
	struct pollfd ready[] = {
	    {.fd = LISTENER, .events = POLLIN}, {.fd = SIGNALS, .events = POLLIN}};
	struct signalfd_siginfo signal_info;
	sigset_t waited;

	must(argc > 2, "usage: stand_in_supervisor WORKERS PROGRAM [ARGUMENT]...");
	task.most = strtol(argv[1], NULL, 10);
	sigemptyset(&waited);
	sigaddset(&waited, SIGCHLD);
	sigaddset(&waited, SIGTERM);
	sigprocmask(SIG_BLOCK, &waited, NULL);
	start(argv + 2);
	must(dup3(signalfd(-1, &waited, SFD_CLOEXEC), SIGNALS, O_CLOEXEC) == SIGNALS, "signalfd");
	for (;;) {
		reap();
		if (task.held != 0 && task.ending)
			answer(EINTR);
		else if (task.held != 0 && each_worker(NULL) < task.most)
			answer(0);
		if (poll(ready, 2, -1) < 0)
			continue;
		if ((ready[0].revents & POLLIN) != 0)
			receive_fork();
		if ((ready[1].revents & POLLIN) == 0 ||
		    read(SIGNALS, &signal_info, sizeof signal_info) < 0)
			continue;
		if (signal_info.ssi_signo == SIGTERM) {
			task.ending = true;
			(void)kill(task.zygote, SIGTERM);
		}
	}
}

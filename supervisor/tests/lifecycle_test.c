/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The real supervisor's processes: forks, calls that the monitor answers, and the end.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness.h"

static struct harness h;

static bool
is_gone(pid_t pid)
{
	return kill(pid, 0) != 0 && errno == ESRCH;
}

/* The monitor ends a task by shutting its side down, and still hears of the end. */
static void
the_task_ends_with_the_monitor(void **state)
{
	struct shai_control_ended ended;
	struct client client;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	client_order(&client, COLD_CALL, 0, NULL, 0); /* it waits for an answer when it is killed */
	assert_int_equal(shutdown(h.control, SHUT_WR), 0);
	(void)harness_receive(&h, SHAI_CONTROL_ENDED, &ended, sizeof(ended));
	assert_int_equal(ended.status, SIGKILL);
	assert_int_equal(harness_wait(&h), 0);
	assert_true(client_closed(&client));
	assert_true(is_gone(h.zygote));
	close(client.socket);
}

static void
the_task_ends_when_the_monitor_is_gone(void **state)
{
	struct client client;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	assert_int_equal(close(h.control), 0);
	assert_int_equal(harness_wait(&h), 0);
	assert_true(client_closed(&client));
	assert_true(is_gone(h.zygote));
	close(client.socket);
}

static void
a_record_that_breaks_the_rules_ends_everything(void **state)
{
	(void)state;
	harness_start(&h, SERVES, NULL);
	harness_order(&h, (enum shai_control_type)99);
	assert_int_equal(harness_wait(&h), 0);
	assert_true(is_gone(h.zygote));
}

static void
tells_how_the_program_ended(void **state)
{
	struct shai_control_ended ended;

	(void)state;
	harness_start(&h, SERVES, NULL);
	(void)client_begin(&h);
	harness_order(&h, SHAI_CONTROL_TERMINATE);
	(void)harness_receive(&h, SHAI_CONTROL_ENDED, &ended, sizeof(ended));
	assert_int_equal(ended.status, SIGTERM);
	assert_int_equal(harness_wait(&h), 0);
}

/* Fills the control socket, as the supervisor does when the monitor does not read. */
static void
fill_control_socket(void)
{
	struct shai_control_counts counts = {
	    .header = control_header(SHAI_CONTROL_COUNTS, sizeof(counts))};
	int process = (int)syscall(SYS_pidfd_open, h.supervisor, 0), size = 1, socket;

	EXPECT(process >= 0);
	socket = (int)syscall(SYS_pidfd_getfd, process, SHAI_CONTROL_FD, 0);
	EXPECT(socket >= 0);
	EXPECT(setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)) == 0);
	while (packet_send(socket, &counts, sizeof(counts), NULL) == 0)
		;
	EXPECT(errno == EAGAIN);
	close(socket);
	close(process);
}

static void
a_monitor_that_reads_late_learns_everything(void **state)
{
	struct shai_control_ended ended;
	struct client clients[2]; /* in all slots: no other worker is left */
	pid_t gone[3] = {0};

	(void)state;
	harness_start(&h, SERVES, NULL);
	for (int i = 0; i < 2; i++) {
		clients[i] = client_begin(&h);
		gone[i] = harness_event(&h, SHAI_EVENT_ACCEPTED)->worker;
	}
	gone[2] = h.zygote;
	fill_control_socket();
	(void)client_bind(&clients[0], "alice");
	harness_order(&h, SHAI_CONTROL_TERMINATE);
	for (size_t i = 0; i < COUNT(gone); i++)
		while (!is_gone(gone[i]))
			(void)poll(NULL, 0, 1);
	assert_string_equal(harness_event(&h, SHAI_EVENT_BOUND)->principal, "alice");
	(void)harness_receive(&h, SHAI_CONTROL_ENDED, &ended, sizeof(ended));
	assert_int_equal(ended.status, SIGTERM);
	assert_int_equal(harness_wait(&h), 0);
	close(clients[0].socket);
	close(clients[1].socket);
}

static void
tells_of_a_launcher_that_fails(void **state)
{
	struct shai_control_ended ended;

	(void)state;
	harness_launch(&h, EXITS);
	(void)harness_receive(&h, SHAI_CONTROL_ENDED, &ended, sizeof(ended));
	assert_int_equal(ended.status, 3 << 8);
}

static void
the_monitor_answers_other_calls(void **state)
{
	struct client client;
	struct shai_control_notification call;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	client_order(&client, COLD_CALL, 0, NULL, 0);
	call = harness_call(&h, 1234);
	assert_int_equal(call.notification.data.nr, SYS_getppid);
	assert_int_equal(call.session, 1);
	assert_int_equal(client_report(&client, NULL, 0).value, 1234);
	close(client.socket);
}

/* What would mix two users, or escape: the monitor refuses it, and says why. */
static void
the_monitor_answers_forks_and_accepts_of_workers(void **state)
{
	static const enum order orders[] = {FORK, ACCEPT_AGAIN};
	struct client client;

	(void)state;
	harness_start(&h, SERVES, NULL);
	client = client_begin(&h);
	for (size_t i = 0; i < COUNT(orders); i++) {
		client_order(&client, orders[i], 0, NULL, 0);
		assert_int_equal(harness_call(&h, -EPERM).session, 1);
		assert_int_equal(client_report(&client, NULL, 0).error, EPERM);
	}
	close(client.socket);
}

static void
the_monitor_answers_forks_that_share(void **state)
{
	static const enum scenario scenarios[] = {HOLDS_A_FILE, FORKS_CHILDREN};
	struct shai_control_ended ended;

	(void)state;
	for (size_t i = 0; i < COUNT(scenarios); i++) {
		if (i > 0)
			harness_stop(&h);
		harness_start(&h, scenarios[i], NULL);
		assert_int_equal(harness_call(&h, -EPERM).notification.data.nr, SYS_clone);
		(void)harness_receive(&h, SHAI_CONTROL_ENDED, &ended, sizeof(ended));
		assert_int_equal(ended.status, 8 << 8);
	}
}

static void
workers_that_die_are_forked_with_pauses(void **state)
{
	const struct shai_control_event *event;
	int64_t before = 0, pause = 0;

	(void)state;
	harness_start(&h, WORKERS_EXIT, NULL);
	for (int i = 0; i < 5; i++) {
		event = harness_event(&h, SHAI_EVENT_WORKER);
		assert_string_equal(event->reason, "the worker exited with status 5");
		if (before != 0) {
			/* At least 20 ms, then 40, ...; how much later depends on the machine. */
			pause = pause == 0 ? 20000000 : 2 * pause;
			assert_true(event->when - before >= pause);
		}
		before = event->when;
	}
}

static void
forks_as_many_workers_as_may_wait(void **state)
{
	struct shai_control_settings settings = harness_settings();
	struct client clients[2];

	(void)state;
	settings.idle_max = 2;
	harness_start(&h, SERVES, &settings);
	while (harness_counts(&h).idle == 0)
		;
	for (int i = 0; i < 2; i++)
		clients[i] = client_begin(&h);
	while (harness_counts(&h).idle != 0) /* both slots are in use: no worker is forked */
		;
	client_reset(&clients[0], 0);
	assert_true(client_closed(&clients[0]));
	while (harness_counts(&h).idle == 0)
		;
	close(clients[0].socket);
	close(clients[1].socket);
}

static void
no_session_begins_before_the_monitor_says_so(void **state)
{
	struct client client;

	(void)state;
	harness_prepare(&h, SERVES, NULL);
	client.socket = client_connect(&h);
	harness_fence(&h);
	assert_false(client_has_report(&client));
	harness_order(&h, SHAI_CONTROL_BEGIN);
	assert_int_equal(client_report(&client, &client.connected, sizeof(client.connected)).size,
	    sizeof(client.connected));
	close(client.socket);
}

/* Whether the hexadecimal value of a line of /proc/PID/status is this. */
static bool
status_has(const char *name, unsigned long long expected)
{
	char path[64], line[256], format[32];
	unsigned long long value = ~0ull;
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/%d/status", h.supervisor);
	(void)snprintf(format, sizeof(format), "%s: %%llx", name);
	file = fopen(path, "re");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL && sscanf(line, format, &value) != 1)
		;
	(void)fclose(file);
	return value == expected;
}

static void
gives_up_what_it_does_not_need(void **state)
{
	const unsigned long long kept =
	    1ull << CAP_SYS_ADMIN | 1ull << CAP_KILL | 1ull << CAP_DAC_READ_SEARCH;

	(void)state;
	harness_start(&h, SERVES, NULL);
	harness_fence(&h);
	assert_true(status_has("CapPrm", kept) && status_has("CapEff", kept));
	assert_true(status_has("CapBnd", kept));
	assert_true(status_has("CapInh", 0) && status_has("CapAmb", 0));
	assert_true(status_has("NoNewPrivs", 1) && status_has("Seccomp", 2));
}

/* Waits until a call of a worker has been answered: so has everything that was sent before. */
static void
call(const struct client *client)
{
	client_order(client, COLD_CALL, 0, NULL, 0);
	(void)harness_call(&h, 1);
	assert_int_equal(client_report(client, NULL, 0).value, 1);
}

/* A killed worker may still be in a system call: a change is in force when it is gone. */
static void
a_fence_waits_for_killed_workers(void **state)
{
	struct shai_control_end end = {.header = control_header(SHAI_CONTROL_END, sizeof(end))};
	struct shai_control_fence fence = {
	    .header = control_header(SHAI_CONTROL_FENCE, sizeof(fence)), .number = 1000};
	struct shai_control_fence fenced;
	struct client dying, other;
	pid_t worker;
	int status;

	(void)state;
	harness_start(&h, SERVES, NULL);
	dying = client_begin(&h);
	(void)client_bind(&dying, "alice");
	worker = harness_event(&h, SHAI_EVENT_BOUND)->worker;
	end.session = 1;
	other = client_begin(&h);
	assert_int_equal(ptrace(PTRACE_SEIZE, worker, NULL, PTRACE_O_TRACEEXIT), 0);
	harness_send(&h, &end, sizeof(end), NULL);
	assert_int_equal(waitpid(worker, &status, __WALL), worker); /* stops on its way out */
	assert_true(WIFSTOPPED(status));
	harness_send(&h, &fence, sizeof(fence), NULL);
	call(&other); /* an answer that comes before these calls is not seen any more */
	call(&other);
	assert_int_equal(ptrace(PTRACE_DETACH, worker, NULL, NULL), 0);
	(void)harness_receive(&h, SHAI_CONTROL_FENCED, &fenced, sizeof(fenced));
	assert_int_equal(fenced.number, fence.number);
	close(dying.socket);
	close(other.socket);
}

/* Gives up the right to look into every process. */
static void
give_up_tracing(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data) != 0)
		_exit(2);
	data[0].effective &= ~(1u << CAP_SYS_PTRACE);
	data[0].permitted &= ~(1u << CAP_SYS_PTRACE);
	if (syscall(SYS_capset, &header, data) != 0)
		_exit(2);
}

/*
 * Whether a process of the same user, without that right, can read another's memory. What
 * refuses it refuses core dumps, too.
 */
static bool
is_readable(pid_t pid)
{
	pid_t reader = fork();
	char path[64];
	int status;

	if (reader == 0) {
		give_up_tracing();
		(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
		_exit(open(path, O_RDONLY | O_CLOEXEC) < 0);
	}
	EXPECT(waitpid(reader, &status, 0) == reader);
	EXPECT(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return WEXITSTATUS(status) == 0;
}

/* It knows passwords of the key-value store. */
static void
keeps_its_memory_to_itself(void **state)
{
	pid_t other = fork();

	(void)state;
	if (other == 0) {
		give_up_tracing();
		(void)raise(SIGSTOP);
		_exit(0);
	}
	EXPECT(waitpid(other, NULL, WUNTRACED) == other);
	assert_true(is_readable(other));
	EXPECT(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
	harness_start(&h, SERVES, NULL);
	harness_fence(&h);
	assert_false(is_readable(h.supervisor));
}

#define TEST(name) HARNESS_TEST(name, &h)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(the_task_ends_with_the_monitor),
	    TEST(the_task_ends_when_the_monitor_is_gone),
	    TEST(a_record_that_breaks_the_rules_ends_everything),
	    TEST(tells_how_the_program_ended),
	    TEST(a_monitor_that_reads_late_learns_everything),
	    TEST(tells_of_a_launcher_that_fails),
	    TEST(the_monitor_answers_other_calls),
	    TEST(the_monitor_answers_forks_and_accepts_of_workers),
	    TEST(the_monitor_answers_forks_that_share),
	    TEST(workers_that_die_are_forked_with_pauses),
	    TEST(forks_as_many_workers_as_may_wait),
	    TEST(no_session_begins_before_the_monitor_says_so),
	    TEST(a_fence_waits_for_killed_workers),
	    TEST(gives_up_what_it_does_not_need),
	    TEST(keeps_its_memory_to_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

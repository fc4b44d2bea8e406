/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include "fake_monitor.h"
#include "records.h"

static struct shai_session session;
static const uint8_t signature[SHAI_SIGNATURE_SIZE] = {1, 2, 3};

/* Accepts a session in a mode. A monitor would choose the lowest free number. */
static void
begin_session(struct fake_monitor *fake, enum shai_mode mode)
{
	struct shai_connected connected = fake_connected(mode);

	(void)fake_connect(fake);
	if (shai_mode_is_dynamic(mode))
		EXPECT(open("/dev/null", O_PATH | O_CLOEXEC) == SHAI_FD_CONNECTION);
	fake_send(fake, &connected, sizeof(connected), NULL, 0);
	fake->sequence--; /* it was no answer */
	EXPECT(shai_accept(&session) == 0);
}

static void
accept_fills_the_session(struct fake_monitor *fake, size_t variant)
{
	static const enum shai_mode modes[] = {
	    SHAI_MODE_SHAI, SHAI_MODE_DYNAMIC, SHAI_MODE_DYNAMIC_LAZY};
	enum shai_mode mode = modes[variant];

	begin_session(fake, mode);
	EXPECT(session.connection == (variant == 0 ? 7 : 8));
	EXPECT(session.state == SHAI_SESSION_CONNECTED && session.mode == mode);
	EXPECT(session.query_pipe == 32 && session.channel == 3 && session.slot == 3);
	EXPECT(session.keyvalue == -1 && session.instance[0] == '\0');
	EXPECT(session.nonce[2] == 14);
	EXPECT(strcmp(session.peer, "127.0.1.1") == 0 && strcmp(session.region, "de") == 0);
	EXPECT(strcmp(session.service, "127.0.0.1:8640") == 0);
	EXPECT(strcmp(session.pipeline, "syse") == 0);
	EXPECT(shai_accept(&session) == -1 && errno == EBUSY);
}

/* A user's worker must not get a second user, whatever its program does. */
static void
a_worker_serves_once(struct fake_monitor *fake, size_t variant)
{
	struct shai_reset request;

	(void)variant;
	begin_session(fake, SHAI_MODE_SHAI);
	shai_reset(&session);
	EXPECT(session.state == SHAI_SESSION_EMPTY && session.nonce[2] == 0);
	EXPECT(fcntl(SHAI_FD_CONNECTION, F_GETFD) == -1);
	EXPECT(fake_receive(fake, &request, sizeof(request)) == sizeof(request));
	EXPECT(request.header.type == SHAI_RESET && request.header.size == sizeof(request));
	EXPECT(request.counters.sessions == 1);
	EXPECT(shai_counters()->sessions == 1);
	EXPECT(shai_accept(&session) == -1 && errno == EPERM);
}

static const struct {
	const char *what;
	size_t offset; /* of a 32-bit field to change */
	uint32_t value;
} connected_spoils[] = {
    {"version", 0, 0x00410001},
    {"type", 0, 0x00420002},
    {"size", 4, sizeof(struct shai_connected) - 1},
    {"mode unknown", offsetof(struct shai_connected, mode), 4},
    {"mode baseline under a monitor", offsetof(struct shai_connected, mode), 0},
    {"mode that has another connection number", offsetof(struct shai_connected, mode), 1},
    {"slot", offsetof(struct shai_connected, slot), SHAI_SLOTS_MAX},
};
#define CONNECTED_SPOILS (sizeof(connected_spoils) / sizeof(connected_spoils[0]))

static void
spoiled_connected_breaks(struct fake_monitor *fake, size_t variant)
{
	struct shai_connected connected = fake_connected(SHAI_MODE_SHAI);
	int descriptor = fake_descriptor();
	size_t before;

	(void)fake_connect(fake);
	before = fake_descriptor_count();
	if (variant < CONNECTED_SPOILS) {
		memcpy((uint8_t *)&connected + connected_spoils[variant].offset,
		    &connected_spoils[variant].value, sizeof(uint32_t));
		fake_send(fake, &connected, sizeof(connected), NULL, 0);
	} else if (variant == CONNECTED_SPOILS) {
		fake_send(fake, &connected, sizeof(connected), &descriptor, 1);
	} else {
		/* Every truncation in steps, and the empty record, which means the end. */
		size_t length = (variant - CONNECTED_SPOILS - 1) * 13;

		connected.header.size = (uint32_t)length;
		fake_send(fake, &connected, length, NULL, 0);
	}
	EXPECT(shai_accept(&session) == -1 && (errno == EPROTO || errno == ECONNRESET));
	EXPECT(session.state == SHAI_SESSION_BROKEN);
	EXPECT(shai_authenticate(&session, "alice", signature) == -1 && errno == ENOTCONN);
	EXPECT(fake_descriptor_count() == before + 1); /* the connection, closed by reset */
	shai_reset(&session);
	EXPECT(fake_descriptor_count() == before);
	EXPECT(shai_accept(&session) == -1 && errno == EPERM);
}

/* The key-value connection and the directories of some classes, the first ones. */
static size_t
bound_descriptors(const struct fake_monitor *fake, uint32_t directories, int *descriptors)
{
	size_t count = 0;

	descriptors[count++] = fake_descriptor();
	for (uint32_t i = 0; i < directories; i++)
		descriptors[count++] = fake_class_directory(fake, i + 1);
	return count;
}

static void
authenticate_brings_the_capability_set(struct fake_monitor *fake, size_t variant)
{
	int descriptors[1 + FAKE_CLASSES];
	size_t count = bound_descriptors(fake, (uint32_t)variant, descriptors);
	struct shai_authenticate request;
	struct fake_bound bound;
	size_t before;

	begin_session(fake, SHAI_MODE_SHAI);
	bound = fake_bound(fake, SHAI_BOUND_KEYVALUE, FAKE_CLASSES);
	bound.head.directory_count = (uint32_t)variant;
	before = fake_descriptor_count();
	fake_send(fake, &bound, bound.head.header.size, descriptors, count);
	EXPECT(shai_authenticate(&session, "alice", signature) == 0);
	EXPECT(session.state == SHAI_SESSION_BOUND && session.class_count == FAKE_CLASSES);
	EXPECT(session.directory_count == variant);
	EXPECT(strcmp(session.instance, "worker(alice, de)") == 0);
	EXPECT(fcntl(session.keyvalue, F_GETFD) == FD_CLOEXEC);
	EXPECT(fake_descriptor_count() == before + 1 + variant);
	for (uint32_t i = 0; i < variant; i++) {
		struct stat wanted, got;

		EXPECT(fcntl(session.directories[i], F_GETFD) == FD_CLOEXEC);
		EXPECT(fstat(session.directories[i], &got) == 0);
		EXPECT(fstat(descriptors[1 + i], &wanted) == 0 && got.st_ino == wanted.st_ino);
	}
	EXPECT(fake_receive(fake, &request, sizeof(request)) == sizeof(request));
	EXPECT(request.header.type == SHAI_AUTHENTICATE);
	EXPECT(strcmp(request.principal, "alice") == 0 && request.signature[2] == 3);
	shai_reset(&session);
	EXPECT(fake_descriptor_count() == before - 1 + variant); /* without the connection */
}

static void
refused_authentication_may_be_repeated(struct fake_monitor *fake, size_t variant)
{
	struct fake_bound refusal, bound;
	char name[SHAI_NAME_MAX + 1];

	(void)variant;
	begin_session(fake, SHAI_MODE_AUDIT);
	memset(name, 'x', sizeof(name));
	name[SHAI_NAME_MAX] = '\0';
	EXPECT(shai_authenticate(&session, name, signature) == -1 && errno == ENAMETOOLONG);
	EXPECT(shai_authenticate(&session, "", signature) == -1 && errno == EINVAL);
	EXPECT(shai_authenticate(&session, "a\nb", signature) == -1 && errno == EINVAL);
	EXPECT(shai_authenticate(&session, "a\xff", signature) == -1 && errno == EINVAL);
	refusal = fake_bound(fake, 0, 0);
	refusal.head.status = EACCES;
	strcpy(refusal.head.reason, "wrong signature");
	fake_send(fake, &refusal, refusal.head.header.size, NULL, 0);
	EXPECT(shai_authenticate(&session, "alice", signature) == -1 && errno == EACCES);
	EXPECT(strstr(shai_reason(), "wrong signature") != NULL);
	EXPECT(session.state == SHAI_SESSION_CONNECTED);
	bound = fake_bound(fake, 0, 2);
	fake_send(fake, &bound, bound.head.header.size, NULL, 0);
	EXPECT(shai_authenticate(&session, "alice", signature) == 0);
	EXPECT(shai_authenticate(&session, "alice", signature) == -1 && errno == ENOTCONN);
}

#define BOUND_SPOILS 10

/* No spoiled answer may bind the session or leave a descriptor behind. */
static void
spoiled_bound_breaks(struct fake_monitor *fake, size_t variant)
{
	int descriptors[4];
	struct fake_bound bound;
	size_t count = bound_descriptors(fake, 2, descriptors);
	size_t before;

	descriptors[3] = fake_descriptor();
	begin_session(fake, SHAI_MODE_SHAI);
	bound = fake_bound(fake, SHAI_BOUND_KEYVALUE, 3);
	bound.head.directory_count = 2;
	if (variant == 0)
		bound.head.header.sequence++;
	else if (variant == 1)
		bound.classes[2] = 1;
	else if (variant == 2)
		bound.head.flags |= 8;
	else if (variant == 3)
		count = 2; /* fewer descriptors than announced */
	else if (variant == 4)
		count = 4;
	else if (variant == 5)
		bound.head.flags = 0; /* one too many */
	else if (variant == 6)
		bound.head.directory_count = 4; /* more than classes */
	else if (variant == 7)
		bound.head.status = EACCES; /* a refusal with capabilities */
	else if (variant == 8)
		bound.head.directory_count = SHAI_DIRECTORIES_MAX + 1;
	else
		bound.head.flags = SHAI_BOUND_VIEW; /* what a stub may hold, a session may not */
	before = fake_descriptor_count();
	fake_send(fake, &bound, bound.head.header.size, descriptors, count);
	EXPECT(shai_authenticate(&session, "alice", signature) == -1 && errno != EACCES);
	EXPECT(session.state == SHAI_SESSION_BROKEN);
	EXPECT(fake_descriptor_count() == before);
	EXPECT(shai_open(&session, (uint32_t[]){1}, 1, NULL, 0) == -1 && errno == ENOTCONN);
}

static void
baseline_accepts_again_and_again(struct fake_monitor *fake, size_t variant)
{
	uint8_t first[SHAI_NONCE_SIZE];
	size_t before;

	(void)variant;
	EXPECT(setenv(SHAI_ENVIRONMENT_MODE, "baseline", 1) == 0);
	(void)fake_connect(fake);
	(void)fake_connect(fake);
	before = fake_descriptor_count();
	EXPECT(shai_accept(&session) == 0);
	EXPECT(session.mode == SHAI_MODE_BASELINE && strcmp(session.peer, "127.0.0.1") == 0);
	memcpy(first, session.nonce, sizeof(first));
	EXPECT(shai_authenticate(&session, "alice", signature) == 0);
	EXPECT(session.state == SHAI_SESSION_BOUND && session.keyvalue == -1);
	shai_reset(&session);
	EXPECT(shai_accept(&session) == 0);
	EXPECT(memcmp(first, session.nonce, sizeof(first)) != 0);
	shai_reset(&session);
	EXPECT(fake_descriptor_count() == before);
	EXPECT(shai_counters()->sessions == 2);
}

static void
workers_get_their_slot_in_baseline(struct fake_monitor *fake, size_t variant)
{
	int status = -1;
	pid_t child;

	(void)variant;
	EXPECT(setenv(SHAI_ENVIRONMENT_MODE, "baseline", 1) == 0);
	(void)fake_connect(fake);
	EXPECT(shai_fork_worker(32) == -1 && errno == EINVAL);
	child = shai_fork_worker(5);
	if (child == 0) {
		EXPECT(shai_accept(&session) == 0);
		EXPECT(session.slot == 5);
		EXPECT(session.query_pipe == 37 && session.channel == 101);
		_exit(0);
	}
	EXPECT(waitpid(child, &status, 0) == child && status == 0);
}

/* Only the environment can tell them, and without it nobody can log in. */
static void
baseline_takes_its_names_from_the_environment(struct fake_monitor *fake, size_t variant)
{
	char text[SHAI_SIGNED_TEXT_SIZE];

	EXPECT(setenv(SHAI_ENVIRONMENT_MODE, "baseline", 1) == 0);
	EXPECT(setenv(SHAI_ENVIRONMENT_SERVICE, "127.0.0.1:8640", 1) == 0);
	if (variant == 0)
		EXPECT(setenv(SHAI_ENVIRONMENT_PIPELINE, "syse", 1) == 0);
	(void)fake_connect(fake);
	EXPECT(shai_accept(&session) == 0);
	EXPECT(strcmp(session.service, "127.0.0.1:8640") == 0);
	EXPECT(strcmp(session.pipeline, variant == 0 ? "syse" : "") == 0);
	EXPECT((shai_signed_text(&session, "alice", text) != 0) == (variant == 0));
}

/* The zygote, beneath a supervisor. */
static _Noreturn void
be_zygote(void)
{
	pid_t parent = getppid(), worker = shai_fork_worker(0);

	if (worker == 0)
		_exit(getppid() == parent ? 7 : 8);
	EXPECT(worker > 0 && waitpid(worker, NULL, 0) == -1 && errno == ECHILD);
	_exit(0);
}

/* The worker's end is the supervisor's to learn. */
static void
a_worker_is_not_a_child_of_the_zygote(struct fake_monitor *fake, size_t variant)
{
	int status, statuses = 0;

	(void)fake, (void)variant;
	if (fork() == 0)
		be_zygote();
	for (int ended = 0; ended < 2; ended++) {
		EXPECT(wait(&status) > 0 && WIFEXITED(status));
		statuses += WEXITSTATUS(status);
	}
	EXPECT(statuses == 7);
	EXPECT(wait(&status) == -1 && errno == ECHILD);
}

RUN(accept_fills_the_session, 3)
RUN(a_worker_serves_once, 1)
RUN(spoiled_connected_breaks, CONNECTED_SPOILS + 1 + 34)
RUN(authenticate_brings_the_capability_set, FAKE_CLASSES + 1)
RUN(refused_authentication_may_be_repeated, 1)
RUN(spoiled_bound_breaks, BOUND_SPOILS)
RUN(baseline_accepts_again_and_again, 1)
RUN(baseline_takes_its_names_from_the_environment, 2)
RUN(a_worker_is_not_a_child_of_the_zygote, 1)
RUN(workers_get_their_slot_in_baseline, 1)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_accept_fills_the_session),
	    cmocka_unit_test(test_a_worker_serves_once),
	    cmocka_unit_test(test_spoiled_connected_breaks),
	    cmocka_unit_test(test_authenticate_brings_the_capability_set),
	    cmocka_unit_test(test_refused_authentication_may_be_repeated),
	    cmocka_unit_test(test_spoiled_bound_breaks),
	    cmocka_unit_test(test_baseline_accepts_again_and_again),
	    cmocka_unit_test(test_baseline_takes_its_names_from_the_environment),
	    cmocka_unit_test(test_a_worker_is_not_a_child_of_the_zygote),
	    cmocka_unit_test(test_workers_get_their_slot_in_baseline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

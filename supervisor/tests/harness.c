/* SPDX-License-Identifier: BSD-2-Clause */
#include "harness.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const int ends_of_slot[] = {SHAI_FD_PIPE, SHAI_FD_CHANNEL};

struct shai_control_settings
harness_settings(void)
{
	return (struct shai_control_settings){
	    .header = control_header(SHAI_CONTROL_SETTINGS, sizeof(struct shai_control_settings)),
	    .mode = SHAI_MODE_SHAI,
	    .slots = 2,
	    .idle_max = 1,
	    .parameters = SHAI_PARAMETER_USER,
	    .mounts_max = 16,
	    .waiting = 64,
	    .sessions_per_worker = 1,
	    .service = "search",
	    .pipeline = "syse"};
}

static void
make_directory(const char *format, const char *directory, uint32_t class)
{
	char path[96];

	(void)snprintf(path, sizeof(path), format, directory, class);
	EXPECT(mkdir(path, 0755) == 0);
}

/* Makes a view with the documents, and the class table. */
static void
make_view(struct harness *h, struct descriptors *out)
{
	uint32_t table[CLASS_TABLE] = {0};
	char path[96];
	int file, view;

	make_directory("%s/view%.0u", h->directory, 0);
	for (uint32_t class = 1; class <= 2; class ++) {
		make_directory("%s/view/%u", h->directory, class);
		make_directory("%s/view/%u/0", h->directory, class);
	}
	for (uint32_t id = 1; id < CLASS_TABLE; id++) {
		table[id] = id == DOCUMENT_OF_BOB ? 2 : 1;
		(void)snprintf(path, sizeof(path), "%s/view/%u/0/%u", h->directory, table[id], id);
		file = open(
		    path, O_WRONLY | O_CREAT | O_CLOEXEC, id == DOCUMENT_PRIVATE ? 0600 : 0644);
		EXPECT(dprintf(file, "document %u\n", id) > 0 && close(file) == 0);
	}
	(void)snprintf(path, sizeof(path), "%s/view", h->directory);
	/* As from a monitor: a mount where it may make one. */
	view = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	out->number[out->count++] = view >= 0 ? view : open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	file = memfd_create("classes", MFD_CLOEXEC);
	EXPECT(write(file, table, sizeof(table)) == sizeof(table));
	out->number[out->count++] = file;
}

static int
listen_anywhere(struct harness *h)
{
	struct sockaddr_in address = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	EXPECT(bind(listening, (struct sockaddr *)&address, size) == 0);
	EXPECT(listen(listening, SOMAXCONN) == 0);
	EXPECT(getsockname(listening, (struct sockaddr *)&address, &size) == 0);
	h->port = ntohs(address.sin_port);
	return listening;
}

/* Becomes the supervisor, in the child. */
static void
become_supervisor(int control, int plan, int status, int output)
{
	char *arguments[] = {(char[]){SUPERVISOR}, (char[]){STAND_IN}, (char[]){"0"}, NULL};
	int moved[] = {
	    fcntl(plan, F_DUPFD, 50), fcntl(status, F_DUPFD, 50), fcntl(control, F_DUPFD, 50)};

	(void)dup2(output, STDOUT_FILENO);
	(void)dup2(output, STDERR_FILENO);
	for (int i = 0; i < 3; i++)
		(void)dup2(moved[i], 3 + i);
	(void)close_range(6, ~0u, 0);
	/* Looking for leaks takes system calls that the supervisor gives up. */
	(void)setenv("ASAN_OPTIONS", "detect_leaks=0", 1);
	(void)execv(SUPERVISOR, arguments);
	_exit(126);
}

void
harness_launch(struct harness *h, enum scenario scenario)
{
	char byte = (char)scenario;
	int plan = memfd_create("plan", MFD_CLOEXEC);
	int control[2], status[2], output[2];
	struct shai_control_started started;

	memset(h, 0, sizeof(*h));
	h->listener = -1;
	(void)snprintf(h->directory, sizeof(h->directory), "/tmp/shai-supervisor-XXXXXX");
	EXPECT(mkdtemp(h->directory) != NULL && chmod(h->directory, 0755) == 0);
	EXPECT(write(plan, &byte, 1) == 1 && pipe2(status, O_CLOEXEC) == 0);
	EXPECT(pipe2(output, O_CLOEXEC) == 0);
	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
	h->supervisor = fork();
	EXPECT(h->supervisor >= 0);
	if (h->supervisor == 0)
		become_supervisor(control[1], plan, status[1], output[1]);
	h->control = control[0];
	h->status = status[0];
	h->output = output[0];
	(void)close(control[1]);
	(void)close(status[1]);
	(void)close(output[1]);
	(void)close(plan);
	(void)harness_receive(h, SHAI_CONTROL_STARTED, &started, sizeof(started));
	h->zygote = started.pid;
}

static void
send_slot(struct harness *h, uint32_t number)
{
	struct shai_control_slot record = {
	    .header = control_header(SHAI_CONTROL_SLOT, sizeof(record)),
	    .slot = number,
	    .count = 2};
	struct descriptors with = {.count = 2};
	int ends[2], channel[2];

	if (number >= SHAI_FD_CHANNEL_COUNT) { /* there are no more numbers for ends */
		record.count = 0;
		harness_send(h, &record, sizeof(record), NULL);
		return;
	}
	EXPECT(pipe2(ends, O_CLOEXEC) == 0);
	EXPECT(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) == 0);
	record.end[0] = (struct shai_control_end_of_slot){ends_of_slot[0] + (int)number, 1};
	record.end[1] = (struct shai_control_end_of_slot){ends_of_slot[1] + (int)number, 0};
	with.number[0] = ends[1];
	with.number[1] = channel[0];
	harness_send(h, &record, sizeof(record), &with);
	descriptors_close(&with);
	if (number == 0) {
		h->pipe = ends[0];
		h->channel = channel[1];
	} else {
		(void)close(ends[0]);
		(void)close(channel[1]);
	}
}

void
harness_set(struct harness *h, const char *principal, uint32_t class_count, uint32_t flags)
{
	struct {
		struct shai_control_set head;
		uint32_t classes[2];
	} record = {.classes = {1, 2}};
	size_t size = sizeof(record.head) + class_count * sizeof(record.classes[0]);

	record.head.header = control_header(SHAI_CONTROL_SET, size);
	record.head.class_count = class_count;
	record.head.flags = flags;
	(void)snprintf(record.head.principal, sizeof(record.head.principal), "%s", principal);
	(void)snprintf(record.head.instance, sizeof(record.head.instance), "worker(%s)", principal);
	harness_send(h, &record, size, NULL);
}

void
harness_prepare(
    struct harness *h, enum scenario scenario, const struct shai_control_settings *settings)
{
	const struct shai_control_settings usual = harness_settings();
	struct descriptors with = {.count = 1};
	uint8_t secret[64];

	if (settings == NULL)
		settings = &usual;
	harness_launch(h, scenario);
	with.number[0] = listen_anywhere(h);
	make_view(h, &with);
	harness_send(h, settings, sizeof(*settings), &with);
	descriptors_close(&with);
	for (uint32_t slot = 0; slot < settings->slots; slot++)
		send_slot(h, slot);
	for (int i = 0; i < 2; i++) {
		struct shai_control_key key = {
		    .header = control_header(SHAI_CONTROL_KEY, sizeof(key)), .present = 1};
		const char *principal = i == 0 ? "alice" : "bob";

		(void)snprintf(key.principal, sizeof(key.principal), "%s", principal);
		client_key(principal, key.key, secret);
		harness_send(h, &key, sizeof(key), NULL);
		harness_set(h, principal, i == 0 ? 1 : 2, SHAI_SET_ANALYZED | SHAI_SET_LEAVES);
	}
}

void
harness_start_without_credits(
    struct harness *h, enum scenario scenario, const struct shai_control_settings *settings)
{
	harness_prepare(h, scenario, settings);
	harness_order(h, SHAI_CONTROL_BEGIN);
}

void
harness_start(
    struct harness *h, enum scenario scenario, const struct shai_control_settings *settings)
{
	struct shai_control_credits credits = {
	    .header = control_header(SHAI_CONTROL_CREDITS, sizeof(credits)), .count = 100000};

	harness_start_without_credits(h, scenario, settings);
	harness_send(h, &credits, sizeof(credits), NULL);
}

void
harness_stand_still(const struct harness *h)
{
	int status;

	EXPECT(kill(h->supervisor, SIGSTOP) == 0);
	EXPECT(waitpid(h->supervisor, &status, WUNTRACED) == h->supervisor && WIFSTOPPED(status));
}

void
harness_go_on(const struct harness *h)
{
	EXPECT(kill(h->supervisor, SIGCONT) == 0);
}

int
harness_wait(struct harness *h)
{
	int status = -1;

	EXPECT(waitpid(h->supervisor, &status, 0) == h->supervisor);
	h->supervisor = 0;
	return status;
}

static int
remove_entry(const char *path, const struct stat *status, int kind, struct FTW *where)
{
	(void)status, (void)kind, (void)where;
	return remove(path);
}

void
harness_stop(struct harness *h)
{
	int status;

	(void)close(h->control); /* as the monitor's death does */
	status = h->supervisor != 0 ? harness_wait(h) : 0;
	if (status != 0)
		fail_msg("the supervisor has ended with wait status 0x%x", (unsigned)status);
	(void)close(h->status);
	(void)close(h->output);
	if (h->listener >= 0)
		(void)close(h->listener);
	if (h->channel > 0)
		(void)close(h->channel);
	if (h->pipe > 0)
		(void)close(h->pipe);
	(void)nftw(h->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int
harness_teardown(void **state)
{
	harness_stop(*state);
	return 0;
}

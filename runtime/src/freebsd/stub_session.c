/* SPDX-License-Identifier: BSD-2-Clause */
#include "stub_session.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "packet.h"
#include "stub_rights.h"

/* ---------------------------------------------------------------- its user */

/*
 * Puts one descriptor in its place. Returns the descriptor for the session: the same
 * one, one with fewer rights, or -1.
 */
static int
place(struct stub *stub, int number, int descriptor)
{
	int *ours;
	int theirs = -1;

	if (number == SHAI_FD_MONITOR) {
		ours = &stub->monitor;
	} else if (number >= SHAI_FD_CHANNEL && number < SHAI_FD_CHANNEL_CHECKED) {
		ours = &stub->channel;
		theirs = stub_for_waiting(descriptor);
	} else if (number == SHAI_FD_CONNECTION_CHECKED) {
		ours = &stub->connection;
		theirs = stub_for_receiving(descriptor);
	} else {
		return descriptor;
	}
	shai_packet_close(ours, 1);
	*ours = descriptor;
	return theirs;
}

/*
 * Makes the session's SHAI_PLACED from the sandbox's. Returns NULL, or what is wrong
 * with it.
 */
static const char *
distribute(struct stub *stub, struct shai_placed *placed, struct stub_record *record)
{
	struct shai_placed theirs = *placed;
	size_t count = record->descriptor_count;
	const char *problem = NULL;
	int given[SHAI_PLACED_MAX];

	if (count != placed->count)
		return "descriptors that do not match its numbers";
	memcpy(given, record->descriptor, count * sizeof(given[0]));
	record->descriptor_count = 0;
	memset(theirs.number, 0, sizeof(theirs.number));
	theirs.count = 0;
	for (size_t i = 0; i < count; i++) {
		int number = placed->number[i];
		int descriptor = place(stub, number, given[i]);

		if (descriptor >= 0) {
			stub_put_descriptor(record, descriptor);
			theirs.number[theirs.count++] = number;
		} else if (number != SHAI_FD_MONITOR) {
			problem = "a descriptor that cannot be limited";
		}
	}
	*placed = theirs;
	return stub->monitor < 0 ? "no monitor" : problem;
}

/*
 * Asks for a user and waits for one. Returns 0 with the sandbox's answer in the
 * record, or -1 with errno.
 */
static int
await_user(struct stub *stub, uint64_t sequence, struct stub_record *record)
{
	struct shai_header header;
	struct iovec part = {&header, sizeof(header)};
	struct pollfd wanted = {.events = POLLIN};
	int ends[2], sent;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	stub->reply = stub_aside(ends[0], stub->last);
	shai_encode_header(&header, SHAI_REQUEST_SESSION, sizeof(header), sequence);
	sent = stub->reply < 0 ? -1 : shai_packet_send(stub->requests, &part, 1, &ends[1], 1);
	(void)close(ends[1]);
	if (sent == 0) {
		wanted.fd = stub->reply;
		stub_wait(&wanted, 1);
		if (stub_receive(stub->reply, record) == 1)
			return 0;
	}
	errno = ECONNRESET;
	return -1;
}

static enum stub_outcome
refuse_user(struct stub *stub, uint64_t sequence, int error, struct stub_record *answer)
{
	struct shai_placed refused = {.status = error};

	shai_packet_close(&stub->reply, 1);
	stub->reply = -1;
	shai_encode_header(&refused.header, SHAI_PLACED, sizeof(refused), sequence);
	stub_put(answer, &refused, sizeof(refused));
	return STUB_ANSWER;
}

enum stub_outcome
stub_accept(
    struct stub *stub, uint64_t sequence, struct stub_record *answer, struct stub_record *second)
{
	struct shai_placed placed;
	const char *problem;

	if (stub->placed)
		return STUB_BROKEN;
	if (await_user(stub, sequence, answer) != 0)
		return refuse_user(stub, sequence, errno, answer);
	problem = shai_decode_placed(stub_bytes(answer), sequence, &placed);
	if (problem == NULL && placed.status != 0) {
		stub_discard(answer);
		return refuse_user(stub, sequence, placed.status, answer);
	}
	stub->placed = true;
	if (problem == NULL)
		problem = distribute(stub, &placed, answer);
	if (problem != NULL || stub_receive(stub->monitor, second) != 1) {
		stub_discard(answer);
		return STUB_BROKEN;
	}
	stub->connection_number = placed.connection;
	memcpy(answer->bytes, &placed, sizeof(placed));
	return STUB_ANSWER;
}

/* ----------------------------------------------------------- its perimeter */

static const struct shai_decisions *
map_decisions(int descriptor)
{
	struct stat status;
	void *mapping;

	if (fstat(descriptor, &status) != 0 ||
	    status.st_size < (off_t)sizeof(struct shai_decisions))
		return NULL;
	mapping = mmap(NULL, sizeof(struct shai_decisions), PROT_READ, MAP_SHARED, descriptor, 0);
	return mapping == MAP_FAILED ? NULL : mapping;
}

static void
forget_perimeter(struct stub *stub)
{
	shai_packet_close(&stub->view, 1);
	stub->view = -1;
	if (stub->decisions != NULL)
		(void)munmap((void *)(uintptr_t)stub->decisions, sizeof(struct shai_decisions));
	stub->decisions = NULL;
}

static const char *
check_bound(const struct shai_bound *head, const struct stub_record *answer)
{
	size_t expected = (head->flags & SHAI_BOUND_VIEW) != 0;

	expected += (head->flags & SHAI_BOUND_DECISIONS) != 0;
	expected += (head->flags & SHAI_BOUND_KEYVALUE) != 0;
	if (answer->descriptor_count != expected)
		return "descriptors that do not match its flags";
	if (head->status == 0 && (~head->flags & (SHAI_BOUND_VIEW | SHAI_BOUND_DECISIONS)) != 0)
		return "no perimeter for the session";
	return NULL;
}

/*
 * Keeps the session's perimeter, which is the view and the decisions, and removes it
 * from the answer. Returns NULL, or what is wrong with the answer.
 */
static const char *
keep_perimeter(struct stub *stub, uint64_t sequence, struct stub_record *answer)
{
	static uint32_t classes[SHAI_CLASSES_MAX];
	struct shai_bound head;
	const char *problem = shai_decode_bound(stub_bytes(answer), sequence, &head, classes);
	size_t kept = 0;

	explicit_bzero(classes, sizeof(classes)); /* not used here, and data of the session */
	if (problem == NULL)
		problem = check_bound(&head, answer);
	if (problem != NULL)
		return problem;
	forget_perimeter(stub);
	if ((head.flags & SHAI_BOUND_VIEW) != 0)
		stub->view = answer->descriptor[kept++];
	if ((head.flags & SHAI_BOUND_DECISIONS) != 0) {
		int memory = answer->descriptor[kept++];

		stub->decisions = map_decisions(memory);
		(void)close(memory);
		problem = stub->decisions == NULL ? "decisions that cannot be mapped" : NULL;
	}
	answer->descriptor_count -= kept;
	memmove(answer->descriptor, answer->descriptor + kept,
	    answer->descriptor_count * sizeof(answer->descriptor[0]));
	head.flags &= SHAI_BOUND_KEYVALUE;
	memcpy(answer->bytes, &head, sizeof(head));
	return problem;
}

/* ------------------------------------------------------------- its monitor */

enum stub_outcome
stub_relay(struct stub *stub, const struct stub_record *request, const struct shai_header *header,
    struct stub_record *answer)
{
	struct iovec part = {(void *)(uintptr_t)request->bytes, request->length};
	int sent = -1;

	if (stub->monitor >= 0)
		sent = shai_packet_send(stub->monitor, &part, 1, NULL, 0);
	if (header->type == SHAI_RESET)
		return STUB_OVER;
	if (sent != 0 || stub_receive(stub->monitor, answer) != 1)
		return STUB_BROKEN;
	if (header->type != SHAI_AUTHENTICATE ||
	    keep_perimeter(stub, header->sequence, answer) == NULL)
		return STUB_ANSWER;
	stub_discard(answer);
	return STUB_BROKEN;
}

/* ----------------------------------------------------------------- its end */

/*
 * Nothing is sent on this socket any more, so a readable socket means that it was
 * closed.
 */
bool
stub_ended(const struct stub *stub)
{
	struct pollfd reply = {.fd = stub->reply, .events = POLLIN};

	return stub->placed && poll(&reply, 1, 0) > 0;
}

bool
stub_end_session(struct stub *stub)
{
	bool placed = stub->placed;
	int owned[] = {stub->monitor, stub->channel, stub->connection};

	forget_perimeter(stub);
	shai_packet_close(owned, sizeof(owned) / sizeof(owned[0]));
	shai_packet_close(&stub->reply, 1);
	stub->monitor = stub->channel = stub->connection = stub->reply = -1;
	stub->connection_number = 0;
	stub->placed = false;
	return placed;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <sys/socket.h>
#include <unistd.h>

#include "harness.h"
#include "login.h"

void
client_key(const char *principal, uint8_t key[SHAI_KEY_SIZE], uint8_t secret[64])
{
	uint8_t seed[32] = {0};

	seed[0] = (uint8_t)principal[0];
	EXPECT(sodium_init() >= 0);
	EXPECT(crypto_sign_seed_keypair(key, secret, seed) == 0);
}

int
client_connect_from(const struct harness *h, uint8_t host)
{
	struct sockaddr_in own = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl((INADDR_LOOPBACK & ~0xffu) | host)};
	struct sockaddr_in address = {.sin_family = AF_INET,
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	    .sin_port = htons((uint16_t)h->port)};
	int client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), now = 1;

	EXPECT(bind(client, (struct sockaddr *)&own, sizeof(own)) == 0);
	EXPECT(connect(client, (struct sockaddr *)&address, sizeof(address)) == 0);
	/* An order does not wait until the one before is acknowledged. */
	EXPECT(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &now, sizeof(now)) == 0);
	return client;
}

int
client_connect(const struct harness *h)
{
	return client_connect_from(h, 1);
}

/* Reads size bytes. Returns false if the connection ended before. */
static bool
read_all(int socket, void *out, size_t size)
{
	for (size_t done = 0; done < size;) {
		struct pollfd ready = {.fd = socket, .events = POLLIN};
		ssize_t length;

		EXPECT(poll(&ready, 1, PATIENCE_MILLISECONDS) == 1);
		length = recv(socket, (char *)out + done, size - done, 0);
		if (length <= 0)
			return false;
		done += (size_t)length;
	}
	return true;
}

struct report
client_report(const struct client *client, void *out, size_t size)
{
	struct report report;

	EXPECT(read_all(client->socket, &report, sizeof(report)));
	EXPECT(report.size <= size);
	EXPECT(read_all(client->socket, out, report.size));
	return report;
}

bool
client_has_report(const struct client *client)
{
	struct pollfd ready = {.fd = client->socket, .events = POLLIN};

	return poll(&ready, 1, 0) == 1;
}

bool
client_closed(const struct client *client)
{
	char byte;

	return !read_all(client->socket, &byte, 1);
}

struct client
client_begin_from(const struct harness *h, uint8_t host)
{
	struct client client = {.socket = client_connect_from(h, host)};
	struct report report = client_report(&client, &client.connected, sizeof(client.connected));

	EXPECT(report.size == sizeof(client.connected) && report.descriptors == 0);
	EXPECT(client.connected.header.type == SHAI_CONNECTED);
	EXPECT(client.connected.header.version == SHAI_WIRE_VERSION);
	EXPECT(strcmp(client.connected.service, "search") == 0);
	EXPECT(strcmp(client.connected.pipeline, "syse") == 0);
	return client;
}

struct client
client_begin(const struct harness *h)
{
	return client_begin_from(h, 1);
}

void
client_order(
    const struct client *client, enum order order, int argument, const void *payload, size_t size)
{
	struct frame frame = {.order = order, .size = (uint32_t)size, .argument = argument};
	char bytes[sizeof(frame) + 2 * SHAI_CONTENT_MAX];

	EXPECT(size <= sizeof(bytes) - sizeof(frame));
	memcpy(bytes, &frame, sizeof(frame));
	if (size > 0)
		memcpy(bytes + sizeof(frame), payload, size);
	EXPECT(send(client->socket, bytes, sizeof(frame) + size, MSG_NOSIGNAL) ==
	       (ssize_t)(sizeof(frame) + size));
}

void
client_finish_orders(const struct client *client)
{
	client_order(client, WRITE, STDOUT_FILENO, "done\n", 5);
	EXPECT(client_report(client, NULL, 0).value == 5);
}

void
client_settle(struct harness *h, const struct client *client)
{
	/* The supervisor and the worker do what was there first with the first call. */
	for (int i = 0; i < 2; i++) {
		client_order(client, COLD_CALL, 0, NULL, 0);
		(void)harness_call(h, 1);
		EXPECT(client_report(client, NULL, 0).descriptors == RESULT);
	}
}

void
client_login(const struct client *client, const char *principal, bool spoiled)
{
	struct shai_authenticate request = {.header = {.version = SHAI_WIRE_VERSION,
						.type = SHAI_AUTHENTICATE,
						.size = sizeof(request),
						.sequence = 11}};
	const struct login login = {
	    .service = "search", .pipeline = "syse", .nonce = client->connected.nonce};
	uint8_t key[SHAI_KEY_SIZE], secret[64];
	char text[LOGIN_TEXT_MAX];
	size_t length = login_text(&login, principal, text);

	client_key(principal, key, secret);
	(void)snprintf(request.principal, sizeof(request.principal), "%s", principal);
	EXPECT(crypto_sign_detached(
		   request.signature, NULL, (const uint8_t *)text, length, secret) == 0);
	request.signature[0] ^= spoiled;
	client_order(client, SEND, 0, &request, sizeof(request));
}

struct shai_bound
client_bound(const struct client *client, struct report *report)
{
	static _Alignas(8) uint8_t record[SHAI_WIRE_MAX];
	struct shai_bound bound;

	*report = client_report(client, record, sizeof(record));
	memcpy(&bound, record, sizeof(bound));
	EXPECT(bound.header.type == SHAI_BOUND && bound.header.sequence == 11);
	EXPECT(bound.header.size == sizeof(bound) + bound.class_count * sizeof(uint32_t));
	return bound;
}

struct report
client_bind(const struct client *client, const char *principal)
{
	struct report report;

	client_login(client, principal, false);
	EXPECT(client_bound(client, &report).status == 0);
	return report;
}

void
client_open(const struct client *client, uint32_t id)
{
	struct shai_open request = {.header = {.version = SHAI_WIRE_VERSION,
					.type = SHAI_OPEN,
					.size = sizeof(request),
					.sequence = 12},
	    .count = 1,
	    .conduit = {id}};

	client_order(client, SEND, 0, &request, sizeof(request));
}

int
client_opened(const struct client *client, int *file)
{
	struct shai_opened opened;
	struct report report = client_report(client, &opened, sizeof(opened));

	EXPECT(report.size == sizeof(opened) && opened.header.type == SHAI_OPENED);
	EXPECT(opened.header.sequence == 12 && opened.count == 1);
	EXPECT(report.descriptors == (opened.status[0] == 0));
	*file = report.value;
	return opened.status[0];
}

void
client_reset(const struct client *client, uint64_t fast_opens)
{
	struct shai_reset request = {.header = {.version = SHAI_WIRE_VERSION,
					 .type = SHAI_RESET,
					 .size = sizeof(request),
					 .sequence = 13},
	    .counters = {.fast_opens = fast_opens, .sessions = 1}};

	client_order(client, SEND, 0, &request, sizeof(request));
}

void
client_leave(const struct client *client)
{
	client_reset(client, 0);
	client_order(client, RETURN, 1, NULL, 0);
	EXPECT(client_closed(client));
	EXPECT(close(client->socket) == 0);
}

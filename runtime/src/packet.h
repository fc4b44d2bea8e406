/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One record with its descriptors over a SOCK_SEQPACKET socket. Async-signal-safe.
 */
#ifndef SHAI_PACKET_H
#define SHAI_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

/* Where a received record and its descriptors go. */
struct shai_packet {
	void *buffer;
	size_t size;
	int *descriptor; /* close-on-exec; the caller's */
	size_t descriptor_count;
	int flags; /* MSG_TRUNC, MSG_CTRUNC: not all of it is there */
};

/*
 * Sends the parts as one record, with count descriptors, at most SHAI_BATCH_MAX.
 * EINTR is retried, SIGPIPE not raised. Returns 0, or -1 with errno.
 */
int shai_packet_send(
    int socket, const struct iovec *parts, int part_count, const int *descriptors, size_t count);

/*
 * Receives one record, waiting for it; room is for SHAI_BATCH_MAX descriptors.
 * EINTR is retried. Returns its length, 0 when the other end is gone, or -1 with
 * errno.
 */
ssize_t shai_packet_receive(int socket, struct shai_packet *packet);

/* Whether a descriptor is a socket that carries records. */
bool shai_packet_socket(int descriptor);

/* Closes count descriptors, leaving out those that are -1. */
void shai_packet_close(const int *descriptors, size_t count);

#endif

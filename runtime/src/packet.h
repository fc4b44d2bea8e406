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

/* The buffers for a received record and its descriptors. */
struct shai_packet {
	void *buffer;
	size_t size;
	int *descriptor; /* close-on-exec; the caller owns them */
	size_t descriptor_count;
	int flags; /* MSG_TRUNC, MSG_CTRUNC: the record is incomplete */
};

/*
 * Sends the parts as one record, with count descriptors, at most SHAI_DESCRIPTORS_MAX.
 * Retries after EINTR and raises no SIGPIPE. Returns 0, or -1 with errno.
 */
int shai_packet_send(
    int socket, const struct iovec *parts, int part_count, const int *descriptors, size_t count);

/*
 * Receives one record, and waits for it. There must be room for SHAI_DESCRIPTORS_MAX
 * descriptors. Retries after EINTR. Returns its length, 0 if the other end is gone,
 * or -1 with errno.
 */
ssize_t shai_packet_receive(int socket, struct shai_packet *packet);

/* Reports whether a descriptor is a socket that carries records. */
bool shai_packet_socket(int descriptor);

/* Closes count descriptors, except those that are -1. */
void shai_packet_close(const int *descriptors, size_t count);

#endif

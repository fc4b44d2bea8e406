/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Records and descriptors over SOCK_SEQPACKET sockets. Nothing here waits.
 */
#ifndef SUPERVISOR_PACKETS_H
#define SUPERVISOR_PACKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "shai_wire.h"

/* Descriptors that came with a record, or go with one. The holder of the structure owns them. */
struct descriptors {
	int number[SHAI_DESCRIPTORS_MAX];
	size_t count;
};

/*
 * Receives one record of at most size bytes. Returns its length; 0 when the other side
 * has gone, or if the record is empty; -1 with errno: EAGAIN if there is none, EMSGSIZE if it is
 * longer or came with descriptors that were not taken. The caller closes what came; with a NULL for
 * received, a record with descriptors is an error and none stay open.
 */
ssize_t packet_receive(int socket, void *record, size_t size, struct descriptors *received);

/* Sends one record with descriptors, which stay open (NULL: none). Returns 0, or -1 with errno. */
int packet_send(int socket, const void *record, size_t size, const struct descriptors *with);

/* Closes all descriptors that are still owned (not -1). */
void descriptors_close(struct descriptors *owned);

/* Gives one up: its number, for the caller to close. */
int descriptors_take(struct descriptors *owned, size_t index);

#endif

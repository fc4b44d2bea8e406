/* SPDX-License-Identifier: BSD-2-Clause */
#include "gate_room.h"

#include "testing.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gate.h"
#include "rollback.h"

static void *
at(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

/* Maps a file, and closes it. */
static void
map(uint64_t address, size_t size, int protection, int flags, int file)
{
	assert_ptr_equal(
	    mmap(at(address), size, protection, flags | MAP_FIXED_NOREPLACE, file, 0), at(address));
	if (file >= 0)
		(void)close(file);
}

/* Puts one end of a pair of sockets at a number. Returns the other. */
static int
place(int number)
{
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(dup2(ends[0], number), number);
	(void)close(ends[0]);
	return ends[1];
}

void
gate_room_open(struct gate_room *room, uint32_t class)
{
	int table;

	/* So that none of the numbers used here is one that is placed. */
	for (int number = 3; number < SHAI_FD_RESERVED_END; number++)
		if (dup2(STDERR_FILENO, number) < 0)
			abort();
	room->supervisor = place(SHAI_FD_MONITOR);
	room->channel = place(SHAI_FD_CHANNEL);
	map(SHAI_ROLLBACK_CODE, SHAI_ROLLBACK_CODE_SIZE, PROT_READ | PROT_EXEC, MAP_PRIVATE,
	    rollback_open());
	map(SHAI_GATE_BUFFER, SHAI_GATE_BUFFER_SIZE, PROT_READ | PROT_WRITE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1);
	map(SHAI_GATE_GRANT, SHAI_GATE_GRANT_SIZE, PROT_READ, MAP_SHARED, gate_new(&room->grant));
	table = memfd_create("classes", MFD_CLOEXEC);
	assert_int_equal(ftruncate(table, GATE_ROOM_CONDUITS * sizeof(uint32_t)), 0);
	room->classes = mmap(NULL, GATE_ROOM_CONDUITS * sizeof(uint32_t), PROT_READ | PROT_WRITE,
	    MAP_SHARED, table, 0);
	assert_ptr_not_equal(room->classes, MAP_FAILED);
	for (uint32_t i = 1; i < GATE_ROOM_CONDUITS; i++)
		room->classes[i] = i == GATE_ROOM_UNCLASSED ? 0 : class + i % 2;
	map(SHAI_GATE_CLASSES, SHAI_GATE_CLASSES_SIZE, PROT_READ, MAP_SHARED, table);
}

void
gate_room_close(struct gate_room *room)
{
	gate_free(room->grant);
	(void)munmap(room->classes, GATE_ROOM_CONDUITS * sizeof(uint32_t));
	(void)munmap(at(SHAI_ROLLBACK_CODE), SHAI_ROLLBACK_CODE_SIZE);
	(void)munmap(at(SHAI_GATE_BUFFER), SHAI_GATE_BUFFER_SIZE);
	(void)munmap(at(SHAI_GATE_GRANT), SHAI_GATE_GRANT_SIZE);
	(void)munmap(at(SHAI_GATE_CLASSES), SHAI_GATE_CLASSES_SIZE);
	if (room->channel >= 0)
		(void)close(room->channel);
	(void)close(room->supervisor);
}

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * As much of a C library as the checks need. They are free-standing: a library's
 * start-up code, buffers and threads would be in every context's memory, and a
 * signal or a thread of its own would spoil what is being checked.
 *
 * Calls return what the kernel does, or a negative errno.
 */
#ifndef RUNTIME_H
#define RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/errno.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "lwc.h"

long raw_call(long number, long a, long b, long c, long d, long e, long f);

#define CALL0(n) raw_call((n), 0, 0, 0, 0, 0, 0)
#define CALL1(n, a) raw_call((n), (long)(a), 0, 0, 0, 0, 0)
#define CALL2(n, a, b) raw_call((n), (long)(a), (long)(b), 0, 0, 0, 0)
#define CALL3(n, a, b, c) raw_call((n), (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define CALL4(n, a, b, c, d) raw_call((n), (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define CALL6(n, a, b, c, d, e, f)                                                                 \
	raw_call((n), (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

/* The numbers of the module's calls, from lookup_calls(). */
struct call_numbers {
	long create, switch_to, restrict_rights, overlay, on_behalf, grant, channel, send, receive;
};
extern struct call_numbers calls;
bool lookup_calls(void);

long lwc_create(const struct lwc_spec *spec, struct lwc_event *event);
long lwc_switch(int context, uint64_t argument, uint32_t flags, struct lwc_event *event);
long lwc_answer(int context, uint64_t value, int error, struct lwc_event *event);
long lwc_restrict(int context, const struct lwc_restriction *restriction);
long lwc_overlay(int context, const struct lwc_overlay *overlay);
long lwc_syscall(int context, int resources, int number, long a, long b, long c);
long shai_grant(int context, const struct shai_conduit *conduits, int count);
long shai_channel(int ends[2]);
long shai_send(int channel, const int *descriptors, int count);
long shai_receive(int channel, int *descriptors, int count); /* returns how many */

/* Returns an unsigned integer of 4 or 8 bytes by name, -1 if there is none. */
int64_t read_variable(const char *name);
long write_variable(const char *name, uint32_t value);

int open_file(const char *path, int flags, int mode);
void *map_pages(size_t count); /* private, anonymous, zeroed */
uint64_t nanoseconds(void);    /* monotonic */
_Noreturn void leave(int status);

/*
 * rfork(2) with shared memory. The child begins on a stack of its own, of which there is
 * one, with a function that does not return.
 */
long share_memory(void (*run)(void));

size_t text_length(const char *text);
bool text_equal(const char *a, const char *b);
void say(const char *text);
void say_number(int64_t number);

void *memset(void *to, int byte, size_t size);
void *memcpy(void *to, const void *from, size_t size);
int memcmp(const void *a, const void *b, size_t size);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#include "runtime.h"

#include <sys/fcntl.h>
#include <sys/mman.h>
#include <sys/sysctl.h>
#include <sys/time.h>
#include <sys/unistd.h>

struct call_numbers calls;

/*
 * The note by which the kernel recognises its own programs, which is otherwise part of
 * the start-up code.
 */
__asm__(".pushsection .note.tag, \"a\", %note\n"
	"	.balign 4\n"
	"	.long 8, 4, 1\n"
	"	.asciz \"FreeBSD\"\n"
	"	.long 1400000\n"
	".popsection\n");

#if defined(__x86_64__)
long
raw_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result = number;
	long second = c;
	unsigned char failed;

	__asm__ volatile("syscall; setc %2"
			 : "+a"(result), "+d"(second), "=q"(failed), "+r"(r10), "+r"(r8), "+r"(r9)
			 : "D"(a), "S"(b)
			 : "rcx", "r11", "memory", "cc");
	return failed ? -result : result;
}

__asm__(".globl _start\n"
	"_start:\n"
	"	xor %ebp, %ebp\n"
	"	and $-16, %rsp\n"
	"	call start\n"
	"	hlt\n");
#elif defined(__aarch64__)
long
raw_call(long number, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;
	long failed;

	__asm__ volatile(
	    "svc #0; cset %1, cs"
	    : "+r"(x0), "=r"(failed), "+r"(x1)
	    : "r"(x8), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
	    : "memory", "cc", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17");
	return failed ? -x0 : x0;
}

__asm__(".globl _start\n"
	"_start:\n"
	"	bl start\n"
	"	brk #1\n");
#endif

void *
memset(void *to, int byte, size_t size)
{
	unsigned char *p = to;

	while (size-- > 0)
		*p++ = (unsigned char)byte;
	return to;
}

void *
memcpy(void *to, const void *from, size_t size)
{
	unsigned char *p = to;
	const unsigned char *q = from;

	while (size-- > 0)
		*p++ = *q++;
	return to;
}

int
memcmp(const void *a, const void *b, size_t size)
{
	const unsigned char *p = a, *q = b;

	for (; size > 0; size--, p++, q++)
		if (*p != *q)
			return *p < *q ? -1 : 1;
	return 0;
}

size_t
text_length(const char *text)
{
	size_t length = 0;

	while (text[length] != '\0')
		length++;
	return length;
}

bool
text_equal(const char *a, const char *b)
{
	return text_length(a) == text_length(b) && memcmp(a, b, text_length(a)) == 0;
}

void
say(const char *text)
{
	(void)CALL3(SYS_write, 1, text, text_length(text));
}

void
say_number(int64_t number)
{
	char digits[24];
	size_t at = sizeof(digits) - 1;
	uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;

	digits[at] = '\0';
	do {
		digits[--at] = (char)('0' + left % 10);
		left /= 10;
	} while (left != 0);
	if (number < 0)
		digits[--at] = '-';
	say(digits + at);
}

void
leave(int status)
{
	for (;;)
		(void)CALL1(SYS_exit, status);
}

static long
variable(const char *name, void *old, size_t *size, const void *new, size_t new_size)
{
	return CALL6(SYS___sysctlbyname, name, text_length(name), old, size, new, new_size);
}

int64_t
read_variable(const char *name)
{
	uint64_t value = 0;
	size_t size = sizeof(value);

	if (variable(name, &value, &size, NULL, 0) < 0)
		return -1;
	return size == 4 ? (int64_t)(int32_t)value : (int64_t)value;
}

long
write_variable(const char *name, uint32_t value)
{
	return variable(name, NULL, NULL, &value, sizeof(value));
}

bool
lookup_calls(void)
{
	static const char *const names[] = {"shai.syscall.lwc_create", "shai.syscall.lwc_switch",
	    "shai.syscall.lwc_restrict", "shai.syscall.lwc_overlay", "shai.syscall.lwc_syscall",
	    "shai.syscall.shai_grant", "shai.syscall.shai_channel", "shai.syscall.shai_send",
	    "shai.syscall.shai_receive"};
	long *const numbers[] = {&calls.create, &calls.switch_to, &calls.restrict_rights,
	    &calls.overlay, &calls.on_behalf, &calls.grant, &calls.channel, &calls.send,
	    &calls.receive};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		*numbers[i] = read_variable(names[i]);
		if (*numbers[i] < 0)
			return false;
	}
	return true;
}

long
lwc_create(const struct lwc_spec *spec, struct lwc_event *event)
{
	return CALL2(calls.create, spec, event);
}

long
lwc_switch(int context, uint64_t argument, uint32_t flags, struct lwc_event *event)
{
	struct lwc_message message = {.argument = argument, .flags = flags};

	return CALL3(calls.switch_to, context, &message, event);
}

long
lwc_answer(int context, uint64_t value, int error, struct lwc_event *event)
{
	struct lwc_message message = {.argument = value, .error = error};

	return CALL3(calls.switch_to, context, &message, event);
}

long
lwc_restrict(int context, const struct lwc_restriction *restriction)
{
	return CALL2(calls.restrict_rights, context, restriction);
}

long
lwc_overlay(int context, const struct lwc_overlay *overlay)
{
	return CALL2(calls.overlay, context, overlay);
}

long
lwc_syscall(int context, int resources, int number, long a, long b, long c)
{
	uint64_t arguments[LWC_ARGUMENTS] = {(uint64_t)a, (uint64_t)b, (uint64_t)c};

	return CALL4(calls.on_behalf, context, resources, number, arguments);
}

long
shai_grant(int context, const struct shai_conduit *conduits, int count)
{
	return CALL3(calls.grant, context, conduits, count);
}

long
shai_channel(int ends[2])
{
	return CALL1(calls.channel, ends);
}

long
shai_send(int channel, const int *descriptors, int count)
{
	return CALL3(calls.send, channel, descriptors, count);
}

long
shai_receive(int channel, int *descriptors, int count)
{
	return CALL3(calls.receive, channel, descriptors, count);
}

long
share_memory(void (*run)(void))
{
	static char stack[65536] __attribute__((aligned(16)));
	const long flags = RFPROC | RFMEM | RFFDG;
#if defined(__x86_64__)
	long result = SYS_rfork;

	__asm__ volatile("syscall\n"
			 "	test %%eax, %%eax\n"
			 "	jnz 1f\n"
			 "	mov %1, %%rsp\n"
			 "	call *%2\n"
			 "1:\n"
			 : "+a"(result)
			 : "r"(stack + sizeof(stack)), "r"(run), "D"(flags)
			 : "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory", "cc");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = SYS_rfork;
	register long x0 __asm__("x0") = flags;

	__asm__ volatile("svc #0\n"
			 "	cbnz x0, 1f\n"
			 "	mov sp, %2\n"
			 "	blr %3\n"
			 "1:\n"
			 : "+r"(x0)
			 : "r"(x8), "r"(stack + sizeof(stack)), "r"(run)
			 : "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x30", "memory", "cc");
	return x0;
#endif
}

int
open_file(const char *path, int flags, int mode)
{
	return (int)CALL3(SYS_open, path, flags, mode);
}

void *
map_pages(size_t count)
{
	long address =
	    CALL6(SYS_mmap, 0, count * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);

	return address < 0 && address > -4096 ? NULL : (void *)address;
}

uint64_t
nanoseconds(void)
{
	struct timespec now;

	(void)CALL2(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

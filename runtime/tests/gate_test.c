/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The gate under a real filter: with the rule, only the library reads a channel;
 * without it, anybody does, so it is the rule and the gate that make the difference.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
/* cmocka needs the headers above. */
#include <cmocka.h>

#include "backend.h"
#include "fake_monitor.h"

#define FIELD(name) (offsetof(struct seccomp_data, name))

/* Refuses read(2) of the channel's number with EPERM unless it comes from the gate. */
static void
install_rule(void)
{
	struct sock_filter code[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 0, 6),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(args[0])),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SHAI_FD_CHANNEL, 0, 4),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(instruction_pointer)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)SHAI_GATE_RETURN, 0, 3),
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, FIELD(instruction_pointer) + 4),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(SHAI_GATE_RETURN >> 32), 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void
only_the_library_reads_a_channel(struct fake_monitor *fake, size_t with_rule)
{
	static struct shai_session session = {.state = SHAI_SESSION_BOUND,
	    .mode = SHAI_MODE_BASELINE,
	    .channel = SHAI_FD_CHANNEL,
	    .timeout_milliseconds = 5000};
	struct shai_document document;
	uint8_t bytes[64];
	ssize_t length;

	fake_transfer(fake, 1, (uint32_t[]){1}, 1);
	fake_transfer(fake, 2, (uint32_t[]){2}, 1);
	if (with_rule)
		install_rule();
	length = read(SHAI_FD_CHANNEL, bytes, sizeof(bytes));
	if (with_rule)
		EXPECT(length == -1 && errno == EPERM);
	else
		EXPECT(length == 12);
	EXPECT(shai_channel_receive(&session, 2, &document, 1) == 1);
	EXPECT(document.conduit == 2);
}

static void
the_gate_holds_its_instructions_and_cannot_be_written(struct fake_monitor *fake, size_t write_to_it)
{
	volatile uint8_t *gate = (uint8_t *)(uintptr_t)SHAI_GATE_ADDRESS;

	(void)fake;
	EXPECT(gate[0] == 0x0f && gate[1] == 0x05 && gate[2] == 0xc3);
	for (size_t i = 3; i < 4096; i++)
		EXPECT(gate[i] == 0); /* no other instruction to jump to but add %al,(%rax) */
	EXPECT(shai_backend_prepare() == -1 && errno == EEXIST);
	EXPECT(signal(SIGSEGV, SIG_DFL) != SIG_ERR);
	if (write_to_it)
		gate[0] = 0x90;
}

static void
channels_are_read_through_the_gate_only(void **state)
{
	(void)state;
	assert_int_equal(fake_run(only_the_library_reads_a_channel, 1), 0);
	assert_int_equal(fake_run(only_the_library_reads_a_channel, 0), 0);
}

static void
the_gate_is_fixed(void **state)
{
	(void)state;
	assert_int_equal(fake_run(the_gate_holds_its_instructions_and_cannot_be_written, 0), 0);
	assert_int_equal(
	    fake_run(the_gate_holds_its_instructions_and_cannot_be_written, 1), 128 + SIGSEGV);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(channels_are_read_through_the_gate_only),
	    cmocka_unit_test(the_gate_is_fixed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

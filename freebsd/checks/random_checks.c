/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Random programs. A session that runs a program after another session of the same process
 * must get the same results as in a fresh process: otherwise the first one has left
 * something. A program is a number from which its calls and their arguments follow. It
 * changes and reads whatever a session can reach; what differs between processes anyway
 * (times, process and thread numbers, addresses) is no result.
 */
#include <sys/fcntl.h>
#include <sys/mman.h>

#include "check.h"
#include "random_steps.h"

#define PROGRAMS 150
#define STEPS 60
#define SEED 20261123u
#define END SYS_vfork /* goes to the monitor */

/* Of one program, in memory that all processes of the check share. */
struct outcome {
	uint32_t ended;
	uint32_t step[STEPS];
	uint64_t result[STEPS];
};

static _Noreturn void
run_program(uint32_t seed, struct outcome *outcome)
{
	random_begin(seed);
	for (int i = 0; i < STEPS; i++)
		outcome->result[i] = random_step(&outcome->step[i]);
	outcome->ended = 1;
	(void)CALL0(END);
	leave(1);
}

/* Runs programs in sessions of one worker, one after the other. */
static _Noreturn void
serve(const uint32_t *seeds, size_t count, struct outcome *outcomes)
{
	static const struct lwc_descriptors anew = {
	    .first = RANDOM_FILE, .last = RANDOM_FILE, .mode = LWC_COPY};
	struct lwc_spec spec = plain_spec();
	struct lwc_event event;

	spec.flags = LWC_MONITORED | LWC_CAPABILITY_MODE;
	if (create(&spec, &event))
		run_program(seeds[event.argument], &outcomes[event.argument]);
	spec = (struct lwc_spec){.version = LWC_VERSION,
	    .source = event.descriptor,
	    .descriptors = &anew,
	    .descriptor_count = 1};
	for (size_t i = 0; i < count; i++) {
		int session;

		REQUIRE_EQUAL(lwc_create(&spec, &event), 0);
		session = event.descriptor;
		REQUIRE_EQUAL(lwc_switch(session, i, LWC_CALL, &event), 0);
		while (event.kind == LWC_EVENT_REDIRECTED && event.call != END)
			REQUIRE_EQUAL(lwc_answer(LWC_CALLER, 0, event.error, &event), 0);
		REQUIRE_EQUAL(CALL1(SYS_close, session), 0);
	}
	leave(0);
}

static void
run_worker(const uint32_t *seeds, size_t count, struct outcome *outcomes)
{
	long child;

	memset(outcomes, 0, count * sizeof(*outcomes));
	child = CALL0(SYS_fork);
	if (child == 0)
		serve(seeds, count, outcomes);
	REQUIRE_EQUAL(wait_for(child), 0);
}

static void
random_programs(void)
{
	struct outcome *alone = (struct outcome *)CALL6(
	    SYS_mmap, 0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANON, -1, 0);
	struct outcome *after = alone + 1;

	REQUIRE_EQUAL(open_file("/tmp/random", O_RDWR | O_CREAT, 0600), RANDOM_FILE);
	for (uint32_t i = 0; i < PROGRAMS; i++) {
		const uint32_t seeds[2] = {
		    SEED + i * 7919, i % 3 == 0 ? SEED + i * 7919 : SEED + i * 104729};

		run_worker(&seeds[1], 1, alone);
		run_worker(seeds, 2, after);
		REQUIRE_EQUAL(alone->ended, 1);
		REQUIRE_EQUAL(after[1].ended, 1);
		for (int step = 0; step < STEPS; step++) {
			if (alone->result[step] == after[1].result[step])
				continue;
			say("    program ");
			say_number(i);
			say(", step ");
			say_number(step);
			say(" of kind ");
			say_number(alone->step[step]);
			say("\n");
			require_equal((long)after[1].result[step], (long)alone->result[step],
			    "random_programs", "the result after another session");
		}
	}
	REQUIRE_EQUAL(CALL1(SYS_unlink, "/tmp/random"), 0);
}

const struct check random_checks[] = {
    {"random programs leave nothing to the next session", random_programs, 0},
    {NULL, NULL, 0},
};

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Checks. Each runs in a process of its own, which must end with status 0 (or by
 * the signal it says); afterwards there must be as many contexts, processes with
 * contexts, and channels as before.
 */
#ifndef CHECK_H
#define CHECK_H

#include "runtime.h"

struct check {
	const char *name;
	void (*run)(void);
	int signal; /* that ends it; 0: none */
};

#define STRINGIFY_(x) #x
#define STRINGIFY(x) STRINGIFY_(x)

/* Ends the check's process with a message if the condition does not hold. */
#define REQUIRE(condition)                                                                         \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			say("    " __FILE__ ":" STRINGIFY(__LINE__) ": not so: " #condition "\n"); \
			leave(1);                                                                  \
		}                                                                                  \
	} while (0)

/* The same for two numbers, which it prints. */
#define REQUIRE_EQUAL(got, expected)                                                               \
	require_equal((long)(got), (long)(expected), __FILE__ ":" STRINGIFY(__LINE__), #got)

void require_equal(long got, long expected, const char *where, const char *what);

extern const struct check context_checks[];
extern const struct check resource_checks[];
extern const struct check redirect_checks[];
extern const struct check behalf_checks[];
extern const struct check overlay_checks[];
extern const struct check audit_checks[];
extern const struct check process_checks[];
extern const struct check channel_checks[];
extern const struct check transfer_checks[];
extern const struct check register_checks[];
extern const struct check isolation_checks[];
extern const struct check random_checks[];
extern const struct check limit_checks[];
extern const struct check unload_checks[];
extern const struct check stress_checks[];
extern const struct check attack_checks[];
extern const struct check arbitrary_checks[];
extern const struct check layer_checks[];
extern const struct check shared_memory_checks[];
extern const struct check trace_checks[];
extern const struct check share_checks[];
extern const struct check stop_checks[];

/* Returns a specification with nothing but its version and source. */
struct lwc_spec plain_spec(void);

/* Creates a context. Returns true in the new one, and fills in *event. */
bool create(const struct lwc_spec *spec, struct lwc_event *event);

void ignore_signal(int number);

/* Opens a file of that name with one letter in it, and gets its conduit. */
int open_conduit(const char *path, int flags, struct shai_conduit *conduit);

/* Waits for a child. Returns its exit status, or 256 + the signal that ended it. */
int wait_for(long child);

/* The path with which this program was started, to execute it again. */
extern const char *own_path;

/* Executes this program with one argument. */
_Noreturn void execute(const char *argument);

/* Returns the exit status of the program when a check executes it with an argument. */
int executed(const char *argument);

/* The same for the argument "descriptor". */
int executed_with_descriptor(void);

void print_figures(void);

#endif

/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Attempts return what the call returned: negative, with errno, when it failed.
 */
#ifndef VICTIM_H
#define VICTIM_H

/* Reads a file to the end and shows it. */
long show(long descriptor);

/* Opens a path that another thread keeps rewriting; shows what it got. */
long race(const char *good, const char *bad, long rounds);

/* Opens while signals arrive. Their handler does not restart calls. */
long open_amid_signals(const char *path);

/* Opens many times; each open gets a descriptor that is free. */
long open_often(const char *path, long times);

/* A vfork child shares its parent's memory and suspends the parent in the meantime. */
long open_in_vfork(const char *path);

/* Opens until no descriptor is left; the last error is the result. */
long exhaust(const char *path);

/* Makes many processes and waits to be ended, if that is what is attempted. */
long breed(const char *attempt, char **arguments, long otherwise);

/* How a worker ends that has done what was attempted; otherwise its status is an error, or 0. */
#define WORKER_SUCCEEDED 100

/* Forks as libshai does: the worker is a child of the task's supervisor. */
long fork_worker(void);
_Noreturn void wait_for_ever(void);

/* Attempts something in a worker. */
long in_worker(long (*attempt)(void));

/* Processes that a process makes which the program has forked, or its worker. */
long make_in_fork(const char *what);
long make_in_worker(const char *what);

/* Workers that greet their clients. */
long serve(long workers);

/* A worker with a user opens a file. */
long open_in_session(const char *path);

/* Reads from each of so many descriptors its own number. */
long read_all(long first, long count);

/* Forks workers, as long as it is not asked to terminate. */
_Noreturn void serve_for_ever(void);

/* Forks workers that are sealed, but deviate somehow before; their clients say what they do. */
_Noreturn void serve_sealed(const char *deviation);

/* The registers that a session begins with, but RAX, are kept for tell_facts. Called by assembly. */
void record_registers(void);

/* Makes the arena, which holds a client's program, executable. */
long allow_programs(void);
void *program_arena(void);

/* Tells the client the process's number (32 bits), reads its program of so many bytes, and executes it. */
_Noreturn void run_program(int connection, unsigned long size);

/* Tells the client all that a session finds; ends the session at its next byte. */
_Noreturn void tell_facts(int connection);

/* A worker made with these flags of clone has a session. */
long serve_in_clone(long flags);

/* The program overhears a worker: by memory that they share, by a descriptor, by a value of its choice. */
long overhear_memory(long flags);
long overhear_descriptor(void);
long overhear_list(void);

/* One worker has two sessions, its child has the second, or the program has one. */
long serve_two_at_once(void);
long serve_two_in_turn(void);
long print_word(const char *where);
long serve_in_fork_of_worker(void);
long serve_itself(void);

/* The program's workers share memory, a descriptor or its state, signals. */
long share_memory(const char *what, const char *path);
long share_descriptor(const char *what, const char *path);
long share_signal(const char *what, const char *number);

/* Traces at files and descriptors; returns otherwise if the attempt is none of these. */
long trace(const char *attempt, char **arguments, long otherwise);

#endif

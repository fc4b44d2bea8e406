/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libshai, the library inside a task: registration, the capability table,
 * sessions, opening conduits, and descriptor channels.
 *
 * Link with -lshai. Link the shared library only, never a copy of its objects:
 * a task that also has it preloaded must end up with one copy, because there is
 * one monitor socket and one gate.
 *
 * The library confines nothing by itself; the kernel does. The library knows
 * which way is allowed to be fast, and takes it. Whatever is unexpected (a
 * record of the wrong size, version or type, a missing descriptor, a closed
 * socket) makes the session unusable: descriptors it had received are closed,
 * every later call fails with ENOTCONN, and the caller should answer its user
 * with an error and call shai_reset().
 *
 * Errors: functions that return int return -1 and set errno; shai_reason()
 * then says what failed, why, and what to do. Pointers must not be NULL.
 *
 * Threads: paths are mapped from any thread. One thread at a time may use the
 * monitor socket, that is: call shai_register() or anything with a session.
 *
 * A worker's life:
 *
 *	pid = shai_fork_worker(slot);              in the zygote
 *	shai_accept(&session);                     blocks until there is a user
 *	... send session.nonce, read the client's signature ...
 *	shai_authenticate(&session, principal, signature);
 *	for each query:
 *		write the query to session.query_pipe
 *		n = shai_channel_receive(&session, number, documents, count);
 *		... read documents[0..n-1].descriptor, close each ...
 *	shai_reset(&session);
 *	_exit(0);
 */
#ifndef SHAI_H
#define SHAI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shai_wire.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SHAI_API __attribute__((visibility("default")))

/* Environment variables that the launcher sets. */
#define SHAI_ENVIRONMENT_INSTANCE "SHAI_INSTANCE" /* what to register as when loaded */
#define SHAI_ENVIRONMENT_MODE "SHAI_MODE"         /* "baseline", "dynamic", "shai", "audit" */

/*
 * What failed last in this thread, for people: the thing, the cause and, where
 * there is one, the remedy. Never NULL; empty before the first failure. Owned by
 * the library and valid until the next failure in this thread.
 */
SHAI_API const char *shai_reason(void);

/* ------------------------------------------------------------ registration */

/*
 * Registers the task as an instance ("indexer", "worker") on SHAI_FD_MONITOR and
 * loads the capability table that the monitor answers with. Done by itself, when
 * the library is loaded, if SHAI_INSTANCE is set and descriptor 3 is a socket;
 * there, failure ends the process (exit status 71), for a task without its table
 * would only fail later and less clearly.
 *
 * Calling it again raises the taint; the new table replaces the old one at once,
 * for path mapping in every thread.
 *
 * Returns 0, or -1 with errno: EACCES and other values the monitor gives;
 * EPROTO for a malformed answer, or when SHAI_MODE says baseline and the monitor
 * does not (or the reverse); ENAMETOOLONG; ECONNRESET when the monitor is gone.
 */
SHAI_API int shai_register(const char *instance);

/*
 * The mode the task runs in: what the monitor said at registration. Before
 * registration SHAI_MODE_BASELINE if the environment says so, otherwise
 * SHAI_MODE_SHAI. A session has its own, in struct shai_session.
 */
SHAI_API enum shai_mode shai_mode(void);

/*
 * The capability table. Entry i, or NULL when i is not below shai_capability_count().
 * Owned by the library and valid for the life of the process.
 */
SHAI_API size_t shai_capability_count(void);
SHAI_API const struct shai_capability *shai_capability_at(size_t i);

/*
 * The descriptor number onto which a path is mapped, and the rest of the path
 * relative to it ("." when nothing is left), written to rest with a NUL. "." and
 * ".." are resolved by name alone, never leaving the prefix.
 * Returns the number (the library keeps it, the caller must not close it), or -1
 * with errno ENOENT when no capability covers the path, ENAMETOOLONG when rest
 * is too small.
 */
SHAI_API int shai_path_lookup(const char *path, char *rest, size_t rest_size);

/* ---------------------------------------------------------------- sessions */

enum shai_session_state {
	SHAI_SESSION_EMPTY = 0, /* all-zero memory, or after shai_reset */
	SHAI_SESSION_CONNECTED, /* a connection, no user */
	SHAI_SESSION_BOUND,     /* authenticated and confined to its user */
	SHAI_SESSION_BROKEN     /* something unexpected happened; only shai_reset is left */
};

/*
 * One user's session. Zero it before its first use. The fields up to the marked
 * line are for the caller to read; timeout_milliseconds may be changed.
 */
struct shai_session {
	int connection; /* the user's connection, -1 when none; closed by shai_reset */
	int query_pipe; /* write end of the queries pipe; reserved number, never close it */
	int channel;    /* read end of the results channel, for shai_channel_receive only */
	/*
	 * The key-value connection confined to this user, close-on-exec; closed by
	 * shai_reset. -1 before authentication and when the monitor gave none, as in
	 * mode baseline, where the caller makes its own.
	 */
	int keyvalue;
	enum shai_mode mode;
	uint32_t slot;
	uint8_t nonce[SHAI_NONCE_SIZE];
	char peer[SHAI_NAME_MAX];     /* numeric address */
	char region[SHAI_NAME_MAX];   /* empty when unknown, and in mode baseline */
	char instance[SHAI_NAME_MAX]; /* "worker(alice, de)"; empty until authenticated */
	uint32_t withheld;            /* conduits the last shai_channel_receive dropped */
	int timeout_milliseconds; /* for an answer on the channel; set to 10000 by shai_accept */

	/* Private from here. */
	enum shai_session_state state;
	uint32_t class_count;
	uint32_t classes[SHAI_CLASSES_MAX]; /* strictly ascending */
};

/*
 * Forks a worker from the zygote, which has one thread: under a monitor there are no
 * others in a task with sessions. slot (0..31) selects the worker's pipe and
 * channel in mode baseline, where no monitor assigns them; in the other modes the
 * monitor's choice counts and slot is ignored.
 * Returns like fork(2): the child's process id, 0 in the child, -1 with errno. On
 * FreeBSD, under a monitor, the child returns from here once for every session.
 */
SHAI_API pid_t shai_fork_worker(uint32_t slot);

/*
 * Waits for a user's connection on SHAI_FD_LISTEN and fills in *session.
 *
 * Under a monitor the system call is answered by it: afterwards descriptor 3 is
 * this worker's own socket and carries SHAI_CONNECTED. A worker serves one
 * session: calling this again in a process that has had one fails with EPERM.
 *
 * In mode baseline it accepts natively, makes the nonce itself, takes pipe and
 * channel by the slot given to shai_fork_worker (0 otherwise), and may be called
 * again after shai_reset.
 *
 * Returns 0, or -1 with errno: as accept4(2) (EINTR is retried); EBUSY when
 * *session is in use; EPROTO; ECONNRESET.
 */
SHAI_API int shai_accept(struct shai_session *session);

/*
 * Relays the client's signature over shai_signed_text() to the monitor and, once
 * the monitor has bound the session, restricts this process to the user's
 * capability set. That is irrevocable and covers the calling thread and what it
 * forks: call it from a single-threaded process. PR_SET_NO_NEW_PRIVS is set. On
 * FreeBSD the session has been confined from its beginning, and now may open what the
 * set covers.
 *
 * In mode baseline there is nothing to relay: the caller must have verified the
 * signature itself, and calls this to mark the session as bound.
 *
 * Returns 0; or -1 with errno: the monitor's (EACCES for a wrong signature, the
 * session stays CONNECTED, and the monitor decides whether another attempt is
 * allowed); EINVAL for an empty principal, or one with a line break;
 * ENAMETOOLONG; EPROTO, ECONNRESET, or what landlock_restrict_self(2) says,
 * upon which the session is broken.
 */
SHAI_API int shai_authenticate(struct shai_session *session, const char *principal,
    const uint8_t signature[SHAI_SIGNATURE_SIZE]);

/*
 * Ends the session: tells the monitor, closes connection and keyvalue, and makes
 * *session EMPTY. Under a monitor the process must now exit; nothing here works
 * any more. On FreeBSD it does not even return there: all that the session had and
 * knew is discarded with it, and shai_fork_worker returns 0 for the next one, in the
 * state that it did so for the first. Never fails; a session that is EMPTY is left
 * alone.
 */
SHAI_API void shai_reset(struct shai_session *session);

/* ------------------------------------------------------ opening conduits */

struct shai_document {
	uint32_t conduit; /* its id */
	int descriptor;   /* open for reading, close-on-exec; the caller closes it */
};

/*
 * Receives the answer to a query from the session's channel: conduit ids, which
 * it opens with this process's own capabilities, best first, until max are open
 * or ids are used up. What cannot be opened is left out and counted in
 * session->withheld. Answers to other queries are discarded unopened. Reads
 * through the gate, the only instruction that may read a channel.
 *
 * In mode dynamic every batch asks the monitor; in mode baseline every open is
 * native; otherwise the monitor is asked only about what the capability set does
 * not cover.
 *
 * Returns how many elements of out were filled in (0..max); each descriptor is
 * the caller's. Or -1 with errno, and nothing is open: ENOTCONN when the session
 * is not bound; ETIMEDOUT (a late answer is discarded by the next call); EPIPE
 * when the sender is gone; EPROTO for a malformed record; ENOSYS without a gate.
 * EPIPE and EPROTO break the session.
 */
SHAI_API ssize_t shai_channel_receive(
    struct shai_session *session, uint32_t query, struct shai_document *out, size_t max);

/*
 * Opens conduits whose ids the caller already has, as shai_channel_receive does.
 * count is at most SHAI_BATCH_MAX, else EINVAL. Returns like it.
 */
SHAI_API ssize_t shai_open(struct shai_session *session, const uint32_t *conduits, size_t count,
    struct shai_document *out, size_t max);

/* --------------------------------------------------------- signed text */

/* Room for shai_signed_text with its NUL, and for a nonce in hexadecimal with NUL. */
#define SHAI_NONCE_HEX_SIZE (2 * SHAI_NONCE_SIZE + 1)
#define SHAI_SIGNED_TEXT_SIZE (sizeof(SHAI_SIGNED_PREFIX) + SHAI_NAME_MAX + SHAI_NONCE_HEX_SIZE)

/* Writes the nonce in lower-case hexadecimal, with NUL. */
SHAI_API void shai_nonce_hex(const uint8_t nonce[SHAI_NONCE_SIZE], char out[SHAI_NONCE_HEX_SIZE]);

/*
 * Writes the text that the client signs, NUL-terminated:
 * SHAI_SIGNED_PREFIX principal "\n" nonce-in-hexadecimal.
 * Returns its length without the NUL, or 0 when the principal is empty, longer
 * than SHAI_NAME_MAX - 1 bytes, or contains a line break.
 */
SHAI_API size_t shai_signed_text(
    const uint8_t nonce[SHAI_NONCE_SIZE], const char *principal, char out[SHAI_SIGNED_TEXT_SIZE]);

/* ------------------------------------------------------------- counters */

/*
 * What this process has counted: under a monitor, from shai_accept on, what its
 * session does, which the monitor reads; before, and in mode baseline, what only
 * this process sees. Never NULL. Read fields with __atomic_load_n(…, __ATOMIC_RELAXED).
 */
SHAI_API const struct shai_counters *shai_counters(void);

#ifdef __cplusplus
}
#endif

#endif

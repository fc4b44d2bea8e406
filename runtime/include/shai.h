/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libshai: the library for tasks that run under a Shai monitor. This header is its
 * manual.
 *
 * PURPOSE
 *
 * libshai registers the task with the monitor, serves users' sessions, and opens
 * conduits (the files of the pipeline). It opens a conduit natively if the task's
 * capability set covers it, and asks the monitor otherwise. libshai enforces
 * nothing; the kernel does.
 *
 * A task that only reads and writes files does not need this header. The launcher
 * preloads the library, which registers the task and maps paths. Include the header
 * to serve users (shai_fork_worker to shai_reset) or to open conduits by id.
 *
 * LINKING
 *
 * Link with -lshai, always with the shared library. Never link a copy of its
 * objects: a task that also has the library preloaded must have only one copy,
 * because there is only one monitor socket.
 *
 * ORDER OF CALLS
 *
 *	shai_register       once; the library calls it when it is loaded. Again, to
 *	                    raise the task's taint
 *	shai_fork_worker    in the zygote, again and again
 *	  shai_accept         in the worker; blocks until a user connects
 *	  shai_authenticate   after the client has signed shai_signed_text()
 *	  shai_channel_receive, shai_open   any number of times; likewise shai_write,
 *	                    shai_choices and shai_choose
 *	  shai_reset          ends the session
 *	  _exit               if shai_reset returns; in mode baseline shai_accept may follow
 *
 * The other functions may be called at any time.
 *
 * EXAMPLE
 *
 * A worker that serves one user. The format of the user's login and of the queries is
 * the pipeline's own: here a login is the name, NUL-padded, and the signature, and the
 * query is a number.
 *
 *	#include <err.h>
 *	#include <string.h>
 *	#include <sys/wait.h>
 *	#include <unistd.h>
 *	#include "shai.h"
 *
 *	struct login {
 *		char principal[SHAI_NAME_MAX];
 *		uint8_t signature[SHAI_SIGNATURE_SIZE];
 *	};
 *
 *	static void
 *	serve(struct shai_session *session)
 *	{
 *		struct login login;
 *		struct shai_document documents[10];
 *		uint32_t query; // its number
 *		ssize_t count;
 *
 *		// In mode baseline, verify the signature here.
 *		if (write(session->connection, session->nonce, SHAI_NONCE_SIZE) < 0 ||
 *		    read(session->connection, &login, sizeof(login)) != sizeof(login))
 *			return;
 *		login.principal[SHAI_NAME_MAX - 1] = 0;
 *		if (shai_authenticate(session, login.principal, login.signature) != 0) {
 *			warnx("%s", shai_reason());
 *			return;
 *		}
 *		query = session->first_query;
 *		if (write(session->query_pipe, &query, sizeof(query)) != sizeof(query))
 *			return;
 *		count = shai_channel_receive(session, query, documents, 10);
 *		if (count < 0)
 *			warnx("%s", shai_reason());
 *		for (ssize_t i = 0; i < count; i++) {
 *			// Read documents[i].descriptor and write to session->connection.
 *			close(documents[i].descriptor);
 *		}
 *	}
 *
 *	int
 *	main(void)
 *	{
 *		static struct shai_session session;
 *		pid_t worker;
 *
 *		while ((worker = shai_fork_worker(0)) > 0)
 *			waitpid(worker, NULL, 0); // fails where it is no child of the zygote
 *		if (worker < 0)
 *			errx(1, "%s", shai_reason());
 *		if (shai_accept(&session) != 0)
 *			errx(1, "%s", shai_reason());
 *		serve(&session);
 *		shai_reset(&session); // a sealed worker goes on in shai_accept
 *		_exit(0);
 *	}
 *
 * ERRORS
 *
 * Functions that return int, pid_t or ssize_t return -1 on failure and set errno.
 * shai_reason() then says what failed, why, and what to do. Pointers must not be NULL.
 *
 * If the library receives something unexpected (a record of the wrong size, version
 * or type, a missing descriptor, a closed socket), the session is BROKEN: the library
 * closes the descriptors that came with the record, and every later call with the
 * session fails with ENOTCONN, or with EBUSY in shai_accept. Report an error to the
 * user and call shai_reset().
 *
 * OWNERSHIP
 *
 * The caller owns struct shai_session and the descriptors in struct shai_document.
 * shai_reset() closes the descriptors in struct shai_session that need to be closed.
 * Pointers that the library returns belong to the library; never free them.
 *
 * THREADS
 *
 * Path mapping, shai_path_lookup(), shai_reason() and the capability table may be used from
 * any thread. Only one thread at a time may call shai_register() or a function that
 * takes a session, because these use the monitor socket.
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
#define SHAI_ENVIRONMENT_MODE                                                                      \
	"SHAI_MODE" /* "baseline", "dynamic", "dynamic-lazy", "shai", "audit" */
#define SHAI_ENVIRONMENT_SERVICE "SHAI_SERVICE"   /* struct shai_session.service in mode baseline */
#define SHAI_ENVIRONMENT_PIPELINE "SHAI_PIPELINE" /* struct shai_session.pipeline, likewise */

/*
 * Returns a description of the last failure in this thread, for people: what failed,
 * why, and the remedy if there is one. Never NULL, and empty before the first failure.
 * The text belongs to the library and is valid until the next failure in this thread.
 */
SHAI_API const char *shai_reason(void);

/* ------------------------------------------------------------ registration */

/*
 * Registers the task as an instance ("indexer", "worker") over SHAI_FD_MONITOR, and
 * loads the capability table that the monitor answers with.
 *
 * The library calls this when it is loaded, if SHAI_INSTANCE is set and descriptor 3
 * is a socket. A failure then ends the process with exit status 71, because a task
 * without its table would fail later and less clearly.
 *
 * Call it again, with the name of another task, to raise the taint of this process: it
 * then is that task, with its taint, its pipes and channels, and its table, which replaces
 * the old one. The manifest of the present task has to name the other one in raisesTo, and
 * the other taint has to be at least as restrictive. The process must have one thread, and on
 * FreeBSD no other process. Not in a task that serves users, whose sessions get their
 * taint by shai_authenticate().
 *
 * The monitor examines what the process could write to: open files, shared mappings of
 * files, pipes and channels. If the new taint may not write to one of them, flags decide:
 *   0                    the raise is refused, and shai_reason() names them
 *   SHAI_REGISTER_CLOSE  the monitor closes them: a pipe, a channel or an open file then is
 *                        /dev/null, open for reading, at the same number. Mappings cannot
 *                        be closed; while there is one, the raise is refused
 *
 * If the raise is refused, the process is what it was before; with SHAI_REGISTER_CLOSE some
 * descriptors may be closed.
 *
 * Returns 0, or -1 with errno:
 *   EBUSY              something that the new taint may not write to is open, or the
 *                      process has other threads, or more than 16,384 descriptors or
 *                      mappings
 *   EACCES and others  the monitor refused for another reason: shai_reason() says which
 *   ENAMETOOLONG       instance is longer than SHAI_NAME_MAX - 1 bytes
 *   EPROTO             the answer is malformed, or exactly one of SHAI_MODE and
 *                      the monitor says baseline
 *   ECONNRESET         the monitor is gone
 *   ENOMEM             out of memory
 */
SHAI_API int shai_register(const char *instance, uint32_t flags);

/*
 * Returns the task's mode, which the monitor sends at registration. Before
 * registration returns SHAI_MODE_BASELINE if SHAI_MODE is "baseline", and
 * SHAI_MODE_SHAI otherwise. A session has a mode of its own, in struct shai_session.
 * Never fails.
 */
SHAI_API enum shai_mode shai_mode(void);

/*
 * Return the number of entries of the capability table, and its entry i (NULL if i is
 * not below the number of entries). Entries belong to the library and are valid for the
 * life of the process. Never fail.
 */
SHAI_API size_t shai_capability_count(void);
SHAI_API const struct shai_capability *shai_capability_at(size_t i);

/*
 * Finds the capability that covers a path. Writes the rest of the path, relative to the
 * capability's descriptor, to rest, with a NUL (or "." if nothing is left). "." and ".."
 * are resolved by name alone, and never leave the capability's prefix.
 *
 * Returns the descriptor's number, which belongs to the library: do not close it.
 * Or returns -1 with errno:
 *   ENOENT        no capability covers the path
 *   ENAMETOOLONG  rest is too small
 */
SHAI_API int shai_path_lookup(const char *path, char *rest, size_t rest_size);

/* ---------------------------------------------------------------- sessions */

enum shai_session_state {
	SHAI_SESSION_EMPTY = 0, /* all-zero memory, or after shai_reset */
	SHAI_SESSION_CONNECTED, /* after shai_accept: a connection, no user */
	SHAI_SESSION_BOUND,     /* after shai_authenticate: confined to its user */
	SHAI_SESSION_BROKEN     /* something unexpected happened: call shai_reset */
};

/*
 * One user's session. The caller zeroes it before its first use. The caller may read the
 * public fields, and may write timeout_milliseconds.
 */
struct shai_session {
	int connection; /* the user's connection, -1 when none; closed by shai_reset */
	int query_pipe; /* write end of the query pipe; never close it */
	int channel;    /* readable when shai_channel_receive has something to do; never close it */
	/*
	 * The key-value connection that is limited to this user, close-on-exec; closed by
	 * shai_reset. -1 before authentication, and if the monitor sent none. In mode
	 * baseline it is always -1, and the caller makes its own connection.
	 */
	int keyvalue;
	enum shai_mode mode;
	uint32_t slot;                  /* which pair of query pipe and channel it uses */
	uint8_t nonce[SHAI_NONCE_SIZE]; /* what the client has to sign, see shai_signed_text */
	/* Number queries from here upwards: transfers for others are dropped. */
	uint32_t first_query;
	char peer[SHAI_NAME_MAX];     /* numeric address */
	char region[SHAI_NAME_MAX];   /* empty when unknown, and in mode baseline */
	char service[SHAI_NAME_MAX];  /* what clients call it; a part of the signed text */
	char pipeline[SHAI_NAME_MAX]; /* its name; a part of the signed text */
	char instance[SHAI_NAME_MAX]; /* "worker(alice, de)"; empty until authenticated */
	uint32_t withheld;        /* how many conduits the last receive or open could not open */
	int timeout_milliseconds; /* of shai_channel_receive; shai_accept sets it to 10000 */

	/* Private from here. */
	enum shai_session_state state;
	uint32_t class_count;
	uint32_t directory_count;
	int directories[SHAI_DIRECTORIES_MAX]; /* of the first classes */
	uint32_t classes[SHAI_CLASSES_MAX];    /* strictly ascending */
};

/*
 * Forks a worker. Call it in the zygote, the task's first process, which must have one
 * thread. (Under a monitor a task with sessions cannot have more.)
 *
 * slot (0..31) selects the worker's query pipe and channel in mode baseline. In the
 * other modes the monitor selects them, and slot is ignored.
 *
 * On Linux, under a monitor, the call waits until a worker is wanted: call it in a loop.
 * The worker is then not a child of the zygote, which cannot wait for it, and handlers of
 * pthread_atfork(3) are not called.
 *
 * Returns like fork(2): the worker's process id in the zygote, 0 in the worker, or -1
 * with errno (EINVAL if slot is out of range, EINTR if a signal came or the task is to
 * end). On FreeBSD, under a monitor, it returns 0 in the worker once for each session.
 */
SHAI_API pid_t shai_fork_worker(uint32_t slot);

/* What is reserved for sessions without shai_reserve, in bytes. */
#define SHAI_RESERVE_HEAP ((size_t)256 << 10)
#define SHAI_RESERVE_STACK ((size_t)64 << 10)

/*
 * Says how much memory a session may use beyond what its worker has when it first calls
 * shai_accept: bytes for malloc(3), and bytes of stack below the caller of shai_accept.
 * Call it in the zygote, before shai_fork_worker. Never fails.
 *
 * It applies to sealed workers (see shai_accept). Their sessions cannot map memory:
 * malloc(3) fails with ENOMEM once the reserve is used up, and a stack that outgrows its
 * reserve ends the worker. Every writable page is restored after each session, which costs
 * about a tenth of a microsecond: reserve what sessions need, and not more.
 */
SHAI_API void shai_reserve(size_t heap, size_t stack);

/*
 * Waits until a user connects to SHAI_FD_LISTEN, and fills in *session. The session is
 * then CONNECTED.
 *
 * Under a monitor the monitor accepts the connection for the worker, and descriptor 3
 * becomes this session's own socket to the monitor. What the worker writes to standard
 * output and error in the session goes nowhere, since others than the user read the
 * task's log: report errors to the user.
 *
 * Under a monitor a worker serves one session, or several if it is sealed (Linux) or has
 * contexts (FreeBSD). Each session then finds the worker as the first one found it: the
 * memory, the registers, and the descriptors. On Linux this function returns again for
 * the next session, on FreeBSD shai_fork_worker does. The monitor seals a worker that,
 * when it first calls shai_accept, has one thread, no signal handlers, no signals that are
 * blocked or wait, no timers, no limit on CPU time, and no shared writable memory. If it
 * refuses, it says why in its log, and the worker serves one session. For its workers to be
 * sealed, a program
 *
 *   - does what every session needs before, in the zygote: loading, computing, and binding
 *     functions (ld -z now);
 *   - keeps no descriptor, counter or cache from one session for the next;
 *   - maps no memory in a session, and changes no mapping (see shai_reserve);
 *   - sets no timers, limits, signal handlers or signal masks in a session;
 *   - uses no random generator that it has seeded before: every session would draw the
 *     same numbers. getrandom(2) is right.
 *
 * In mode baseline the library accepts the connection itself, generates the nonce, and
 * uses the slot given to shai_fork_worker (0 without). Call it again after shai_reset
 * to serve the next user.
 *
 * Returns 0, or -1 with errno:
 *   EBUSY       *session is not EMPTY
 *   EPERM       shai_reset has returned in this worker; it must exit
 *   EPROTO      the monitor's record is malformed
 *   ECONNRESET  the monitor is gone
 *   others      see accept4(2); the library retries after EINTR
 */
SHAI_API int shai_accept(struct shai_session *session);

/*
 * Binds the session to a user. Sends the client's signature of shai_signed_text() to
 * the monitor, which verifies it. The process then gets the user's capability set: it
 * can open the user's documents natively, which it could not before. The session is
 * then BOUND.
 *
 * In mode baseline the library verifies nothing and restricts nothing. The caller must
 * verify the signature first, and calls this to mark the session as BOUND.
 *
 * Returns 0, or -1 with errno:
 *   EACCES and others  the monitor refused, EACCES for a wrong signature; the session
 *                      stays CONNECTED, and the monitor decides whether the user may
 *                      try again
 *   EINVAL             principal is empty, contains a line break or is not UTF-8
 *   ENAMETOOLONG       principal is longer than SHAI_NAME_MAX - 1 bytes
 *   ENOTCONN           the session is not CONNECTED
 *   EPROTO             the answer is malformed; the session is BROKEN
 *   ECONNRESET         the monitor is gone; the session is BROKEN
 */
SHAI_API int shai_authenticate(struct shai_session *session, const char *principal,
    const uint8_t signature[SHAI_SIGNATURE_SIZE]);

/*
 * Ends the session: tells the monitor, closes connection and keyvalue, and makes
 * *session EMPTY. Does nothing if the session is EMPTY. Never fails.
 *
 * Under a monitor it does not return in a worker that serves several sessions: the whole
 * session is discarded with its memory, and the next one begins in shai_accept (Linux) or
 * shai_fork_worker (FreeBSD), in the same state as the first. If it returns, the process
 * must exit, because no other function works any more.
 *
 * In mode baseline shai_accept may follow.
 */
SHAI_API void shai_reset(struct shai_session *session);

/* ------------------------------------------------------ opening conduits */

struct shai_document {
	uint32_t conduit; /* its id */
	int descriptor;   /* open for reading, close-on-exec; the caller closes it */
};

/*
 * Receives the answer to a query from the session's channel, and opens its conduits.
 * The answer lists conduit ids, best first. The library opens them in this order, with
 * this process's own capabilities, until max are open or no id is left. It leaves out
 * those that cannot be opened, and counts them in session->withheld. It discards answers
 * to other queries without opening anything.
 *
 * query is the number that the caller has sent with the query. Do not use a number twice,
 * and begin at a random number: an answer that is late for one session can arrive in the
 * next one.
 *
 * In mode baseline every open is native. In mode dynamic the monitor decides every
 * open. In the other modes the library asks the monitor only about conduits that the
 * capability set does not cover.
 *
 * Returns how many elements of out it has filled in (0..max). The caller owns their
 * descriptors, and closes them. Or returns -1 with errno, and nothing is open:
 *   ENOTCONN    the session is not BOUND
 *   ETIMEDOUT   no answer in timeout_milliseconds; a later call discards a late answer
 *   EPIPE       the sender is gone, where this is known; the session is BROKEN
 *   EPROTO      a record is malformed; the session is BROKEN
 *   ECONNRESET  the monitor is gone; the session is BROKEN
 */
SHAI_API ssize_t shai_channel_receive(
    struct shai_session *session, uint32_t query, struct shai_document *out, size_t max);

/*
 * Opens conduits by id, in the same way as shai_channel_receive. count is at most
 * SHAI_BATCH_MAX.
 *
 * Returns like shai_channel_receive. Or returns -1 with errno, and nothing is open:
 *   EINVAL      count is too large
 *   ENOTCONN    the session is not BOUND
 *   EPROTO      the answer is malformed; the session is BROKEN
 *   ECONNRESET  the monitor is gone; the session is BROKEN
 */
SHAI_API ssize_t shai_open(struct shai_session *session, const uint32_t *conduits, size_t count,
    struct shai_document *out, size_t max);

/* ------------------------------------------------- writing typed conduits */

/*
 * Writes content to a conduit that has a type in the pipeline's manifest: through the monitor,
 * since no task can write such a conduit by itself. conduit is a file's path in the pipeline
 * ("/support/accesses"), or a tuple's key. Content is whole lines, each with its line break, in the
 * form of the conduit's type (docs/policies.md, "Typed conduits"), SHAI_CONTENT_MAX bytes at most.
 *
 * The monitor reads the content, decides with what it contains, and writes all of it or nothing.
 * When the call returns 0, it is on the disk; what was written to a log is a fact from then on.
 *
 *   flags 0              the content is added at the end
 *   SHAI_WRITE_REPLACE   it takes the place of what the conduit contains; not in a log
 *
 * session is the bound session that writes; NULL in a task without sessions. One thread and one
 * process of a task may call it at a time: answers come on the socket that they share.
 *
 * Returns 0, or -1 with errno; nothing is written then, except that after ECONNRESET and EIO it is
 * not known, and whoever reads the conduit finds either all of it or nothing:
 *   EACCES       the policies forbid it, or the conduit has no type
 *   EBADMSG      the content is not in the form of the type: shai_reason() names the line
 *   ENOENT       the pipeline has no such conduit
 *   EINVAL       unknown flags, nothing to add, or SHAI_WRITE_REPLACE in a log
 *   EFBIG        the conduit would become longer than its type allows
 *   EIO, ENOSPC  it could not be written
 *   EAGAIN       the task has too many writes under way
 *   EMSGSIZE     the content is longer than SHAI_CONTENT_MAX
 *   ENAMETOOLONG conduit is longer than SHAI_PREFIX_MAX - 1 bytes
 *   ENOTCONN     the session is not BOUND
 *   EOPNOTSUPP   mode baseline, in which the monitor writes nothing
 *   EPROTO       the answer is malformed; the session is BROKEN
 *   ECONNRESET   the monitor is gone; the session is BROKEN
 */
SHAI_API int shai_write(struct shai_session *session, const char *conduit, const void *content,
    size_t size, uint32_t flags);

/* -------------------------------------------- choosing a document's policy */

/* What the user of a session may choose for one conduit. */
struct shai_offer {
	char conduit[SHAI_PREFIX_MAX]; /* its path in the pipeline, which is signed */
	char nonce[SHAI_NAME_MAX];     /* is signed, too; for one choice, within 10 minutes */
	char policy[SHAI_POLICY_MAX];  /* in force, if the user may choose it; else empty */
	uint32_t count;                /* of choice, 0..SHAI_OFFERED_MAX */
	char choice[SHAI_OFFERED_MAX][SHAI_POLICY_MAX];
};

/*
 * Asks which policies the session's user may choose for a conduit, by id. The user is the one that
 * the session is bound to.
 *
 * Returns 0, or -1 with errno; *offer is then unspecified:
 *   EACCES       there is nothing for the user to choose. It is the same if the conduit does not
 *                exist, or the user may not read it in this session
 *   ENOTCONN     the session is not BOUND
 *   EOPNOTSUPP   mode baseline, in which the monitor decides nothing
 *   EPROTO       the answer is malformed; the session is BROKEN
 *   ECONNRESET   the monitor is gone, or it has ended the session; the session is BROKEN
 */
SHAI_API int shai_choices(struct shai_session *session, uint32_t conduit, struct shai_offer *offer);

/*
 * Chooses a policy for a conduit, by id. policy is one of those that shai_choices has offered, and
 * signature is the user's, by the key of the login, of the text that docs/wire.md defines
 * ("What is signed for a choice"). The task cannot make it: the user's client does.
 *
 * A choice can end sessions that lose the document by it, also the one that asks. The answer then
 * may not arrive: after ECONNRESET the policy may have been chosen.
 *
 * Returns 0 when the policy is in force, with *reason empty. Or returns -1 with errno, and nothing
 * has changed. *reason says why, in words for the user; it is empty unless the monitor said so:
 *   EACCES        as in shai_choices, or the policy is not offered, or the signature is not the
 *                 user's signature of this choice for the document as it is now: it also is not
 *                 when something was chosen since shai_choices, or the content is new. Or the
 *                 choice cannot be recorded, since the disk of the monitor's audit log is full
 *   ESTALE        something was chosen, or the content changed, while the monitor decided
 *   EIO           the choice could not be stored
 *   ENAMETOOLONG  policy is longer than SHAI_POLICY_MAX - 1 bytes
 *   ENOTCONN, EOPNOTSUPP, EPROTO, ECONNRESET  as in shai_choices
 *
 * After EACCES and ESTALE, call shai_choices before the next attempt.
 */
SHAI_API int shai_choose(struct shai_session *session, uint32_t conduit, const char *policy,
    const unsigned char signature[SHAI_SIGNATURE_SIZE], char reason[SHAI_REASON_MAX]);

/* --------------------------------------------------------- signed text */

/* Sizes of the buffers for shai_nonce_hex and shai_signed_text, with the NUL. */
#define SHAI_NONCE_HEX_SIZE (2 * SHAI_NONCE_SIZE + 1)
#define SHAI_SIGNED_TEXT_SIZE (sizeof(SHAI_SIGNED_PREFIX) + 3 * SHAI_NAME_MAX + SHAI_NONCE_HEX_SIZE)

/* Writes the nonce to out in lower-case hexadecimal, with a NUL. Never fails. */
SHAI_API void shai_nonce_hex(const uint8_t nonce[SHAI_NONCE_SIZE], char out[SHAI_NONCE_HEX_SIZE]);

/*
 * Writes the text that the client of a session signs to out, with a NUL:
 * SHAI_SIGNED_PREFIX service "\n" pipeline "\n" principal "\n" nonce-in-hexadecimal. The
 * client signs it without the NUL, with Ed25519.
 *
 * Returns the length without the NUL. Returns 0 if a name is empty, is longer than
 * SHAI_NAME_MAX - 1 bytes, or contains a line break; errno is not set.
 */
SHAI_API size_t shai_signed_text(
    const struct shai_session *session, const char *principal, char out[SHAI_SIGNED_TEXT_SIZE]);

/* ------------------------------------------------------------- counters */

/*
 * Returns this process's counters. Under a monitor shai_reset sends them to it. Never
 * NULL. The memory belongs to the library. Read fields with
 * __atomic_load_n(…, __ATOMIC_RELAXED).
 */
SHAI_API const struct shai_counters *shai_counters(void);

#ifdef __cplusplus
}
#endif

#endif

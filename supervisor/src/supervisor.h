/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The state of a supervisor: of one task, whose program (the zygote) forks a worker for
 * each session of a user.
 *
 * A slot holds what one session at a time uses: ends of pipes and channels, a connection
 * to the key-value store. A worker has the slot with its index for life. It serves one session,
 * or, if it is sealed (shai_rollback.h), one after the other. Sessions, slots and workers live in
 * arrays of a fixed size.
 */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "gate.h"
#include "keys.h"
#include "keyvalue.h"
#include "limits.h"
#include "loop.h"
#include "mounts.h"
#include "packets.h"
#include "queue.h"
#include "regions.h"
#include "sets.h"
#include "shai_supervision.h"
#include "worker_records.h"

struct session;

enum worker_state {
	WORKER_NONE,      /* the entry is free */
	WORKER_BORN,      /* has not asked for a session */
	WORKER_IDLE,      /* waits in accept4 for a session */
	WORKER_SERVING,   /* has a session */
	WORKER_RETURNING, /* is being rolled back, and will wait in accept4 again */
	WORKER_COMPARED,  /* waits in accept4 until the monitor has compared it */
	WORKER_REFUSED,   /* may not have one (any more) */
	WORKER_STATES
};

struct worker {
	enum worker_state state; /* worker_become changes it */
	pid_t pid;               /* a child: its number is its own until it is reaped */
	uint64_t waiting;        /* the notification of its accept4 while it is idle or compared */
	struct session *session;
	uint64_t sealing;         /* the notification of its latest seccomp call */
	bool sealed;              /* can be rolled back */
	bool soiled;              /* has not been rolled back since its last session */
	bool dismissed;           /* killed, because it is not needed any more */
	int connection;           /* where its sessions have their connection, 0: it had none */
	uint32_t sessions;        /* that it has had */
	uint32_t compared;        /* of them, those before it was compared the last time */
	int64_t returned;         /* when its last session was over */
	struct shai_grant *grant; /* by which it reads its channel itself; NULL: it does not */
};

enum session_state {
	SESSION_NONE,    /* the slot is free */
	SESSION_UNBOUND, /* its client may log in */
	SESSION_ASKED,   /* the monitor decides on the login */
	SESSION_WAITING, /* permitted; waits for a credit, or for the key-value store */
	SESSION_BOUND,
	SESSION_ENDING,  /* its worker is killed, but may run until it is reaped */
	SESSION_CLEANING /* its worker is gone; its key-value connection is being reset */
};

/* The beginning of a record that waits in a channel, and the record's length; 0: there is none. */
struct unread {
	ssize_t length;
	struct {
		uint32_t query, reserved, conduit[2];
	} head;
};

/* An end of a pipe or channel: the worker gets it, or the supervisor reads it. */
struct end {
	int number;
	enum shai_end_use use;
	int descriptor;        /* of those that workers get */
	struct source channel; /* of those that the supervisor reads */
	uint32_t query;        /* that the session's latest transfer answers */
	int64_t answered;      /* when it came; or when the session was bound */
	bool paused;           /* not read before the monitor has answered */
	bool gated;            /* not read: the slot's worker does it, by its grant */
	struct unread unread;  /* what waited for the worker at the last look */
};

/* A record of a channel, on its way to the session's worker. */
struct transfer {
	struct shai_transfer record;
	size_t length;
	uint32_t asked_count; /* the monitor is to answer about so many of its numbers: */
	uint8_t asked[SHAI_BATCH_MAX];
};

struct slot {
	bool present;
	uint32_t count;
	struct end end[SHAI_SLOT_ENDS_MAX];
	uint32_t first_query;   /* of its latest session with a user */
	struct keyvalue *store; /* NULL until the first session that needs it */
	struct source store_socket;
};

struct session {
	enum session_state state; /* session_become changes it */
	TAILQ_ENTRY(session) unsettled;
	uint32_t slot;
	uint64_t id;
	struct supervisor *supervisor;
	struct worker *worker;
	struct source socket; /* the supervisor's end of the worker's descriptor 3 */
	enum shai_mode mode;
	uint8_t nonce[SHAI_NONCE_SIZE];
	uint8_t peer[SHAI_ADDRESS_SIZE];
	char region[SHAI_NAME_MAX];
	char principal[SHAI_NAME_MAX];  /* of the last login, verified or not */
	struct principal *user;         /* verified; counts the session, while it lives */
	struct set *set;                /* held; what was decided on, then what it is bound with */
	char instance[SHAI_NAME_MAX];   /* of the set */
	char store_user[SHAI_NAME_MAX]; /* whose key-value connection the slot has; empty: none */
	uint64_t key_version;           /* of the key that the login was verified with */
	int64_t began;                  /* loop_now */
	int64_t asked;                  /* when the login came */
	uint64_t sequence;              /* of the login */
	struct worker_conversation conversation;
	struct transfer transfer; /* the latest */
	bool questioned; /* the monitor is to answer about documents; messages and transfers wait */
	bool grown;      /* the worker does not know the set yet */
	bool hurried;    /* whether it is one of a crowd has been decided */
	bool reset;      /* the worker has said that the session is over */
	bool awaited;    /* while it is ending, a fence is not answered */
	bool violated;   /* an invalid record of its channel was recorded */
	bool explained;  /* another event, or the monitor, says why it ends */
	char reason[SHAI_REASON_MAX]; /* why it ends; empty: the worker's own doing */
	struct shai_counters counters;
};

struct supervisor {
	struct source control; /* to the monitor */
	struct source launcher;
	struct source listener; /* the seccomp listener */
	struct source signals;
	struct source connections; /* the listening socket */
	int64_t accept_after;      /* not before: accepting has failed */
	bool accepts_connections;  /* the listening socket is being watched for them */
	struct queue queue;        /* of connections */

	bool configured;
	struct shai_control_settings settings;
	enum shai_mode mode; /* of new sessions */
	bool running;        /* sessions may begin */
	bool terminating;
	bool lost; /* the monitor has gone or broke the protocol */
	uint32_t credits;
	int view;    /* O_PATH */
	int silence; /* the null device: the output of sessions */
	const uint32_t *classes;
	size_t class_count;
	struct mounts *mounts;
	size_t files_max; /* how many files this process may have open */
	bool has_store;
	struct shai_control_store store;

	pid_t zygote;
	bool zygote_ended;
	bool childless; /* no process of the task is left */
	uint32_t zygote_status;
	bool refused_seal; /* a worker was not sealed; the zygote still has the roll-back code */
	uint64_t fork_waiting; /* the notification of the zygote's clone, 0: none */
	uint32_t unseen;       /* forks that were permitted, whose workers have not been seen */
	int64_t forked;        /* when the last one was permitted */
	int64_t fork_after;    /* not before: the back-off after workers that fail at their start */
	int64_t back_off;

	bool full; /* the monitor does not read its socket now */
	uint64_t next_session;
	uint64_t fenced;  /* the number of a fence that is not answered */
	uint32_t awaited; /* sessions whose end it waits for: a killed worker may still run */
	bool fencing;
	struct shai_control_counts told; /* the last counts */
	int64_t tell_after;              /* no others before */
	uint64_t opens;                  /* documents opened for workers here */

	/* Only the first settings.slots entries of these are used. */
	struct slot slot[SHAI_SLOTS_MAX];
	struct session session[SHAI_SLOTS_MAX]; /* of the slot with the same index */
	struct worker worker[SHAI_SLOTS_MAX];
	uint32_t workers[WORKER_STATES];         /* how many are in each state but WORKER_NONE */
	uint32_t sealed;                         /* how many are sealed */
	TAILQ_HEAD(sessions, session) unsettled; /* what sessions_tend looks at in each turn */
	int64_t oldest_over;                     /* no session reaches its lifetime before */
	int64_t windows_over; /* when to look whether an instance has ended; 0: at once */
	int64_t channels_due; /* when to look at channels that workers read; 0: none does */
	int64_t soiled_over;  /* reuse_tend has nothing to do before */
	struct keys keys;
	struct sets sets;
	struct regions regions;
	struct limits limits;
};

#endif

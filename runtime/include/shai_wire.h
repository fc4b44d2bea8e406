/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The protocol between a task and the reference monitor, and the descriptor
 * numbers that both sides and the system call filter agree on. On systems where a task
 * with sessions has a supervisor, a worker's session speaks with the supervisor, in the
 * same records.
 *
 * This header is the only definition: the monitor's constants and layouts in
 * monitor/internal/wire are tested against it.
 *
 * Transport: one SOCK_SEQPACKET socket per task at SHAI_FD_MONITOR; one record
 * is one message; descriptors travel as SCM_RIGHTS. Integers are little-endian,
 * structures have no padding, text is NUL-padded UTF-8 and always terminated.
 * A record that is shorter or longer than its type says, has another version,
 * or is of a type not listed for its direction ends the connection.
 */
#ifndef SHAI_WIRE_H
#define SHAI_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#define SHAI_WIRE_VERSION 4
#define SHAI_WIRE_MAX 65536 /* largest record, in bytes */

/*
 * Reserved descriptor numbers. The launcher fills the numbers that a task does not
 * use with an O_PATH descriptor of /dev/null, so that no ordinary open ever returns
 * one of them. The filter forbids duplicating onto them or away from them, and closing one
 * has no effect. In a task that serves users 0, 1 and 2 are reserved, too.
 */
#define SHAI_FD_MONITOR 3            /* messages to and from the monitor */
#define SHAI_FD_CLASSES 4            /* uint32_t class[conduit], mapped read-only */
#define SHAI_FD_LISTEN 6             /* the monitor answers accept4 on it */
#define SHAI_FD_CONNECTION 7         /* the user's connection, native writes */
#define SHAI_FD_CONNECTION_CHECKED 8 /* the same, every write asks the monitor */
#define SHAI_FD_KEYVALUE 9           /* restricted connection to the key-value store */
#define SHAI_FD_GRANT 11             /* what a sealed worker reads of its channel (Linux) */
#define SHAI_FD_ROLLBACK 12          /* the code that rolls a sealed worker back (Linux) */
#define SHAI_FD_CAPABILITY 16        /* directory capabilities: 16 numbers; the view is the first */
#define SHAI_FD_CAPABILITY_COUNT 16
#define SHAI_FD_PIPE 32 /* data pipes, 64 numbers */
#define SHAI_FD_PIPE_COUNT 64
#define SHAI_FD_CHANNEL 96 /* descriptor channels, native writes, 32 numbers */
#define SHAI_FD_CHANNEL_COUNT 32
#define SHAI_FD_CHANNEL_CHECKED 128 /* the same channels, every write asks the monitor */
#define SHAI_FD_RESERVED_END 160

#define SHAI_NAME_MAX 96    /* instance, principal, conduit names, with NUL */
#define SHAI_PREFIX_MAX 256 /* path prefixes, with NUL */
#define SHAI_REASON_MAX 256 /* reasons of refusals, with NUL */
#define SHAI_NONCE_SIZE 32
#define SHAI_SIGNATURE_SIZE 64   /* Ed25519 */
#define SHAI_BATCH_MAX 64        /* conduits in one SHAI_OPEN */
#define SHAI_CLASSES_MAX 8192    /* classes in one capability set */
#define SHAI_SLOTS_MAX 4096      /* sessions of a task at the same time */
#define SHAI_DIRECTORIES_MAX 240 /* classes whose directories a session gets */
#define SHAI_DESCRIPTORS_MAX 253 /* descriptors with one record (SCM_MAX_FD) */
#define SHAI_CONTENT_MAX 16384   /* content of one SHAI_WRITE, in bytes */
#define SHAI_POLICY_MAX 256      /* a policy with its arguments, with NUL */
#define SHAI_OFFERED_MAX 8       /* policies that one SHAI_OFFERED offers */

/*
 * The text that a client signs: SHAI_SIGNED_PREFIX service "\n" pipeline "\n" principal
 * "\n" lower-case-hex(nonce). The client knows the service and the pipeline that it wants
 * to speak with, and does not take them from the answer: a nonce that comes from another
 * service is then of no use to whoever relays it.
 */
#define SHAI_SIGNED_PREFIX "shai-session-v2\n"

enum shai_mode {
	SHAI_MODE_BASELINE = 0, /* nothing is enforced */
	SHAI_MODE_DYNAMIC = 1,  /* every open and every egress write asks the monitor */
	SHAI_MODE_SHAI = 2,     /* the capability set runs natively */
	SHAI_MODE_AUDIT = 3,    /* decided and recorded as in mode shai, but never denied */
	SHAI_MODE_DYNAMIC_LAZY =
	    4, /* as dynamic, but the monitor logs opens, and decides at the write */
	SHAI_MODE_LAST = SHAI_MODE_DYNAMIC_LAZY
};

/* Whether the taint is tracked while tasks run: nothing is opened natively in a session. */
static inline bool
shai_mode_is_dynamic(uint32_t mode)
{
	return mode == SHAI_MODE_DYNAMIC || mode == SHAI_MODE_DYNAMIC_LAZY;
}

enum shai_type {
	/* task to monitor */
	SHAI_REGISTER = 1,     /* shai_register -> SHAI_REGISTERED */
	SHAI_AUTHENTICATE = 2, /* shai_authenticate -> SHAI_BOUND; once per session */
	SHAI_OPEN = 3,         /* shai_open -> SHAI_OPENED */
	SHAI_RESET = 4,        /* shai_reset, no answer: the session is over */
	SHAI_WRITE = 5,        /* shai_write, then size bytes of content -> SHAI_WRITTEN */
	SHAI_CHOICES = 6,      /* shai_choices -> SHAI_OFFERED */
	SHAI_CHOOSE = 7,       /* shai_choose -> SHAI_CHOSEN */
	/* monitor to task */
	SHAI_REGISTERED = 64, /* shai_registered, then capability_count shai_capability */
	SHAI_CONNECTED = 65,  /* shai_connected, queued before accept4 returns */
	SHAI_BOUND = 66,      /* shai_bound, then class_count uint32_t; descriptors per flags */
	SHAI_OPENED = 67,     /* shai_opened, with one descriptor per granted conduit, in order */
	/*
	 * A shai_header, then a record of the session's channel: a shai_transfer of its own
	 * length. Only where a supervisor reads the channel for the worker (Linux).
	 */
	SHAI_TRANSFER = 68,
	/*
	 * shai_grown, then class_count uint32_t; descriptors of directories. Comes from a
	 * supervisor (Linux), before a SHAI_OPENED.
	 */
	SHAI_GROWN = 69,
	SHAI_WRITTEN = 70, /* shai_written */
	SHAI_OFFERED = 71, /* shai_offered, then count policies, SHAI_POLICY_MAX bytes each */
	SHAI_CHOSEN = 72   /* shai_chosen */
};

struct shai_header {
	uint16_t version;  /* SHAI_WIRE_VERSION */
	uint16_t type;     /* enum shai_type */
	uint32_t size;     /* of the whole record, in bytes */
	uint64_t sequence; /* an answer has that of its request */
};

struct shai_register {
	struct shai_header header;
	char instance[SHAI_NAME_MAX]; /* "indexer", "search", "worker" */
	uint32_t flags;               /* SHAI_REGISTER_* */
	uint32_t reserved;            /* 0 */
};

/*
 * The monitor closes descriptors, pipes and channels that the new taint may not write to.
 * Without the flag it refuses to raise the taint while there are any.
 */
#define SHAI_REGISTER_CLOSE 1u

enum shai_capability_kind {
	SHAI_KIND_DIRECTORY = 1, /* number is a directory descriptor */
	SHAI_KIND_PIPE = 2,      /* number is an end of a data pipe */
	SHAI_KIND_CHANNEL = 3    /* number is an end of a descriptor channel */
};

#define SHAI_RIGHT_READ 1u
#define SHAI_RIGHT_WRITE 2u /* write, create, rename, remove beneath it */
#define SHAI_RIGHT_ASK 4u   /* the monitor decides on opens that the kernel refuses */

struct shai_capability {
	char prefix[SHAI_PREFIX_MAX]; /* the path that libshai maps onto the descriptor */
	int32_t number;               /* a reserved descriptor number */
	uint16_t kind;                /* enum shai_capability_kind */
	uint16_t rights;              /* SHAI_RIGHT_* */
};

struct shai_registered {
	struct shai_header header;
	int32_t status; /* 0 or a positive errno */
	uint32_t mode;  /* enum shai_mode */
	char reason[SHAI_REASON_MAX];
	uint32_t capability_count;
	uint32_t conduit_count; /* entries of the class table */
};

struct shai_connected {
	struct shai_header header;
	uint8_t nonce[SHAI_NONCE_SIZE];
	char peer[SHAI_NAME_MAX];     /* the peer's numeric address as the monitor saw it */
	char region[SHAI_NAME_MAX];   /* derived from it; empty when unknown */
	char service[SHAI_NAME_MAX];  /* of the signed text */
	char pipeline[SHAI_NAME_MAX]; /* of the signed text */
	uint32_t mode;                /* enum shai_mode, for this whole session */
	uint32_t slot;                /* which pipe and channel pair the session uses */
};

struct shai_authenticate {
	struct shai_header header;
	char principal[SHAI_NAME_MAX];
	uint8_t signature[SHAI_SIGNATURE_SIZE];
};

#define SHAI_BOUND_DECISIONS 1u /* what a stub answers from (FreeBSD) */
#define SHAI_BOUND_KEYVALUE 2u  /* key-value connection */
#define SHAI_BOUND_VIEW 4u      /* the view, or a filler, for a stub (FreeBSD) */

struct shai_bound {
	struct shai_header header;
	int32_t status; /* 0 or a positive errno; the session stays unbound on error */
	uint32_t flags; /* SHAI_BOUND_*; descriptors come in the order view, decisions, key-value */
	char reason[SHAI_REASON_MAX];
	char instance[SHAI_NAME_MAX]; /* "worker(alice, de)" */
	uint32_t class_count;         /* sorted class numbers of the capability set follow */
	/*
	 * Of so many classes, the first ones, the descriptors of their directories come last
	 * in the record: mounts that the session can only read, and cannot leave. The monitor
	 * opens the documents of the others. 0..SHAI_DIRECTORIES_MAX.
	 */
	uint32_t directory_count;
};

struct shai_open {
	struct shai_header header;
	uint32_t count; /* 1..SHAI_BATCH_MAX */
	uint32_t reserved;
	uint32_t conduit[SHAI_BATCH_MAX]; /* unused entries are 0 */
};

struct shai_opened {
	struct shai_header header;
	uint32_t count;
	uint32_t reserved;
	int32_t status[SHAI_BATCH_MAX]; /* 0: a descriptor is attached; else a positive errno */
};

/* The content takes the place of what the conduit contains. Without it, it is added at the end. */
#define SHAI_WRITE_REPLACE 1u

/* A write to a conduit that has a type. */
struct shai_write {
	struct shai_header header;
	uint32_t flags;                /* SHAI_WRITE_* */
	uint32_t size;                 /* of the content that follows, 0..SHAI_CONTENT_MAX */
	char conduit[SHAI_PREFIX_MAX]; /* a file's path in the pipeline, or a tuple's key */
};

struct shai_written {
	struct shai_header header;
	int32_t status; /* 0: all of it was written; else a positive errno: nothing was */
	uint32_t reserved;
	char reason[SHAI_REASON_MAX];
};

/* Asks which policies the session's user may choose for a conduit. */
struct shai_choices {
	struct shai_header header;
	uint32_t conduit; /* its number */
	uint32_t reserved;
};

/*
 * The answer. With a status other than 0 all the rest is 0, and it is the same whether there is
 * no such conduit, the user may not read it here, or has nothing to choose for it.
 */
struct shai_offered {
	struct shai_header header;
	int32_t status;                /* 0 or a positive errno */
	uint32_t count;                /* 0..SHAI_OFFERED_MAX; the policies follow */
	char conduit[SHAI_PREFIX_MAX]; /* its path in the pipeline */
	char nonce[SHAI_NAME_MAX];     /* stands for the conduit as it is */
	char policy[SHAI_POLICY_MAX];  /* in force, if the user may choose it; else empty */
};

/* Passes the user's signed choice of a policy on. */
struct shai_choose {
	struct shai_header header;
	uint32_t conduit; /* its number */
	uint32_t reserved;
	char policy[SHAI_POLICY_MAX];           /* one of those that were offered */
	uint8_t signature[SHAI_SIGNATURE_SIZE]; /* of the text in docs/wire.md */
};

struct shai_chosen {
	struct shai_header header;
	int32_t status; /* 0: the policy is in force; else a positive errno: nothing has changed */
	uint32_t reserved;
	char reason[SHAI_REASON_MAX];
};

/*
 * The session's capability set as it is now. It takes the place of what SHAI_BOUND, or an
 * earlier SHAI_GROWN, has brought.
 */
struct shai_grown {
	struct shai_header header; /* sequence 0 */
	uint32_t class_count;      /* sorted class numbers follow */
	uint32_t directory_count;  /* as in shai_bound */
};

/*
 * A record on a descriptor channel (SOCK_SEQPACKET pair): one transfer. The length of
 * the record determines the count: (length - 8) / 4, 0..SHAI_BATCH_MAX. query repeats
 * the number that the requester put into its query: shai_first_query or a later one. A
 * conduit of 0 stands for one that the session may not open.
 */
struct shai_transfer {
	uint32_t query;
	uint32_t reserved; /* 0 */
	uint32_t conduit[SHAI_BATCH_MAX];
};

/*
 * The number of a session's first query. It has 30 bits, so that numbers stay positive in
 * every language; it is random, and on Linux far from that of the slot's session before, so that
 * a late answer to that one is not taken for one to this.
 */
static inline uint32_t
shai_first_query(const uint8_t nonce[SHAI_NONCE_SIZE])
{
	return (uint32_t)nonce[0] | (uint32_t)nonce[1] << 8 | (uint32_t)nonce[2] << 16 |
	       (uint32_t)(nonce[3] & 0x3F) << 24;
}

/* Counts of what a session has done by itself. The monitor does not trust them. */
struct shai_counters {
	uint64_t fast_opens;        /* opens that the kernel allowed natively */
	uint64_t slow_opens;        /* opens that went to the monitor */
	uint64_t dropped_transfers; /* conduits received on a channel that could not be opened */
	uint64_t transfers;         /* conduits received on channels */
	uint64_t sessions;          /* sessions that ended */
};

struct shai_reset {
	struct shai_header header;
	struct shai_counters counters; /* of the session */
};

#endif

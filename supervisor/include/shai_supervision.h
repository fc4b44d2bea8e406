/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The control records between the reference monitor and the supervisor of a task with
 * sessions. The task's workers speak shai_wire.h with their supervisor.
 *
 * This header is the only definition. Transport: one SOCK_SEQPACKET socket at the
 * supervisor's descriptor SHAI_CONTROL_FD; one record is one message; descriptors travel
 * as SCM_RIGHTS. Integers are little-endian, structures have no padding, text is
 * NUL-padded UTF-8 and always terminated, reserved fields are 0. Addresses are IPv6
 * addresses in network order, IPv4 in its mapped form. The monitor is trusted: a record
 * that breaks these rules is a defect of the monitor, and ends the supervisor.
 */
#ifndef SHAI_SUPERVISION_H
#define SHAI_SUPERVISION_H

#include <assert.h>
#include <linux/seccomp.h>
#include <stdint.h>

#include "shai_wire.h"

#define SHAI_CONTROL_VERSION 3
#define SHAI_CONTROL_MAX 65536 /* largest record, in bytes */
#define SHAI_CONTROL_FD 5

#define SHAI_ADDRESS_SIZE 16      /* IPv6 */
#define SHAI_KEY_SIZE 32          /* Ed25519 public key */
#define SHAI_SLOT_ENDS_MAX 12     /* pipe and channel ends of one slot */
#define SHAI_WAITING_MAX 4096     /* connections that wait for a worker */
#define SHAI_REGIONS_MAX 512      /* prefixes in one record */
#define SHAI_STORE_PATH_MAX 108   /* sockaddr_un.sun_path */
#define SHAI_STORE_COMMAND_MAX 96 /* a renamed command, with NUL */
#define SHAI_EVENTS_MAX 64        /* events in one record */
#define SHAI_COUNTERS_COUNT 5     /* fields of struct shai_counters, in its order */

enum shai_control_type {
	/* monitor to supervisor */
	SHAI_CONTROL_SETTINGS = 1,   /* once, first; descriptors: listening socket, view, classes */
	SHAI_CONTROL_SLOT = 2,       /* each slot once, before BEGIN; one descriptor for each end */
	SHAI_CONTROL_BEGIN = 3,      /* header only: sessions begin from now on */
	SHAI_CONTROL_KEY = 5,        /* a principal's public key, or its removal */
	SHAI_CONTROL_REGIONS = 6,    /* a part of the table of regions */
	SHAI_CONTROL_SET = 7,        /* an instance's capability set */
	SHAI_CONTROL_FORGET = 8,     /* the removal of a set */
	SHAI_CONTROL_MODE = 9,       /* the mode of new sessions */
	SHAI_CONTROL_FENCE = 10,     /* -> SHAI_CONTROL_FENCED */
	SHAI_CONTROL_TERMINATE = 11, /* header only: SIGTERM to the zygote, which ends by itself */
	SHAI_CONTROL_END = 12,       /* ends one session */
	SHAI_CONTROL_BIND = 13,      /* answers SHAI_CONTROL_ASK_BIND */
	SHAI_CONTROL_RELAY = 14,     /* a record for a worker, with its descriptors */
	SHAI_CONTROL_CREDITS = 15,   /* permits bindings */
	SHAI_CONTROL_STORE = 16,     /* where the key-value store is */
	SHAI_CONTROL_SEALED = 17,    /* a worker can be rolled back from now on */
	SHAI_CONTROL_COMPARED = 18,  /* answers SHAI_CONTROL_COMPARE */
	/* supervisor to monitor */
	SHAI_CONTROL_STARTED = 64,      /* the launcher runs; descriptor: the roll-back code */
	SHAI_CONTROL_LISTENER = 65,     /* header only; descriptor: the seccomp listener */
	SHAI_CONTROL_ENDED = 66,        /* the zygote ended, and no worker is left */
	SHAI_CONTROL_NOTIFICATION = 67, /* a system call that the monitor answers */
	SHAI_CONTROL_ASK_BIND = 68,     /* may this session be bound? */
	SHAI_CONTROL_ASK_RECORD = 69,   /* a worker's question, answered with RELAY */
	SHAI_CONTROL_EVENTS = 70,       /* what happened, in order */
	SHAI_CONTROL_FENCED = 71, /* what came before the FENCE is in force, who ended is gone */
	SHAI_CONTROL_COUNTS = 72, /* how many workers there are, and what was opened for them */
	SHAI_CONTROL_COMPARE = 73 /* is a worker that was rolled back what it was when sealed? */
};

struct shai_control_header {
	uint16_t type;    /* enum shai_control_type */
	uint16_t version; /* SHAI_CONTROL_VERSION */
	uint32_t size;    /* of the whole record, in bytes */
};

/* ---------------------------------------------------- monitor to supervisor */

#define SHAI_PARAMETER_USER 1u
#define SHAI_PARAMETER_REGION 2u

/* A limit of 0 means that there is none. */
struct shai_control_settings {
	struct shai_control_header header;
	uint32_t mode;          /* enum shai_mode */
	uint32_t slots;         /* sessions at the same time, 1..SHAI_SLOTS_MAX */
	uint32_t idle_max;      /* workers that wait for a connection, at least 1 */
	uint32_t unbound_ms;    /* how long a session may be without a user */
	uint32_t lifetime_s;    /* how long a session may last */
	uint32_t per_principal; /* sessions of one principal */
	uint32_t per_peer;      /* of one address (IPv6: /64), without a user for 1 s */
	uint32_t parameters;    /* SHAI_PARAMETER_*: by what instances differ */
	uint32_t mounts_max;    /* detached mounts that are kept */
	uint32_t waiting;       /* connections that may wait for a worker, 1..SHAI_WAITING_MAX */
	uint32_t sessions_per_worker; /* after so many a sealed worker is replaced, at least 1 */
	uint32_t reserved;
	char service[SHAI_NAME_MAX];
	char pipeline[SHAI_NAME_MAX];
};

/* What an end is for. The supervisor reads the channels of sessions. */
enum shai_end_use {
	SHAI_END_READ = 0,        /* a channel's reading end, in the modes shai and audit */
	SHAI_END_GIVE = 1,        /* the worker gets it */
	SHAI_END_READ_CHECKED = 2 /* a checked channel's reading end, in mode dynamic */
};

struct shai_control_end_of_slot {
	int32_t number; /* a reserved descriptor number */
	uint32_t use;   /* enum shai_end_use */
};

struct shai_control_slot {
	struct shai_control_header header;
	uint32_t slot;
	uint32_t count;                                          /* 0..SHAI_SLOT_ENDS_MAX */
	struct shai_control_end_of_slot end[SHAI_SLOT_ENDS_MAX]; /* unused entries are 0 */
};

struct shai_control_key {
	struct shai_control_header header;
	char principal[SHAI_NAME_MAX];
	uint8_t key[SHAI_KEY_SIZE];
	uint32_t present; /* 0 or 1; 0 removes the principal */
	uint32_t reserved;
};

struct shai_control_region {
	uint8_t address[SHAI_ADDRESS_SIZE];
	uint32_t bits; /* of the prefix, 0..128; those after it are 0 in address */
	uint32_t reserved;
	char region[SHAI_NAME_MAX];
};

/*
 * count struct shai_control_region follow. The records from the one with first to the one
 * with last are one table. It replaces the former one when last comes.
 */
struct shai_control_regions {
	struct shai_control_header header;
	uint32_t first; /* 0 or 1 */
	uint32_t last;  /* 0 or 1 */
	uint32_t count; /* 0..SHAI_REGIONS_MAX */
	uint32_t reserved;
};

#define SHAI_SET_ANALYZED 1u /* the analysis foresaw the instance */
#define SHAI_SET_LEAVES 2u   /* no policy question is left for a binding */
#define SHAI_SET_LIVE 4u     /* live sessions of the instance in mode shai get it, too */

/*
 * class_count uint32_t follow: classes in ascending order. A set replaces the former one
 * of the same principal and region. Parameters that instances do not differ by are empty.
 */
struct shai_control_set {
	struct shai_control_header header;
	char principal[SHAI_NAME_MAX];
	char region[SHAI_NAME_MAX];
	char instance[SHAI_NAME_MAX];
	uint32_t flags;              /* SHAI_SET_* */
	uint32_t class_count;        /* 0..SHAI_CLASSES_MAX */
	int64_t expires;             /* nanoseconds since 1970; 0: never */
	int64_t ends;                /* its instance, and its sessions with it; likewise */
	char kv_user[SHAI_NAME_MAX]; /* empty: the instance uses no key-value store */
	char kv_password[SHAI_NAME_MAX];
};

#define SHAI_FORGET_END 1u /* live sessions of the set end, too */

struct shai_control_forget {
	struct shai_control_header header;
	char principal[SHAI_NAME_MAX];
	char region[SHAI_NAME_MAX];
	uint32_t flags; /* SHAI_FORGET_* */
	uint32_t reserved;
	char reason[SHAI_REASON_MAX]; /* of the sessions' end */
};

struct shai_control_mode {
	struct shai_control_header header;
	uint32_t mode; /* enum shai_mode */
	uint32_t reserved;
};

/* SHAI_CONTROL_FENCE and SHAI_CONTROL_FENCED */
struct shai_control_fence {
	struct shai_control_header header;
	uint64_t number;
};

struct shai_control_end {
	struct shai_control_header header;
	uint64_t session;
	char reason[SHAI_REASON_MAX];
};

/* With status 0 the instance's SHAI_CONTROL_SET came before it. */
struct shai_control_bind {
	struct shai_control_header header;
	uint64_t session;
	uint64_t sequence; /* of the worker's SHAI_AUTHENTICATE */
	int32_t status;    /* 0 or a positive errno */
	uint32_t reserved;
	char reason[SHAI_REASON_MAX];
};

/*
 * SHAI_CONTROL_RELAY and SHAI_CONTROL_ASK_RECORD: a whole record of shai_wire.h follows, of
 * the monitor for the worker, and of the worker for the monitor.
 */
struct shai_control_relay {
	struct shai_control_header header;
	uint64_t session;
};

/* The monitor has reserved space in the audit log for so many bindings more. */
struct shai_control_credits {
	struct shai_control_header header;
	uint32_t count;
	uint32_t reserved;
};

struct shai_control_store {
	struct shai_control_header header;
	char path[SHAI_STORE_PATH_MAX]; /* of the store's socket */
	uint32_t reserved;
	char auth[SHAI_STORE_COMMAND_MAX];  /* what AUTH is called there */
	char reset[SHAI_STORE_COMMAND_MAX]; /* what RESET is called there */
};

/*
 * The worker whose seccomp call waits for an answer is sealed (shai_rollback.h): the filter
 * that it gets permits nothing that outlives a roll-back. The supervisor lets the call go on.
 */
struct shai_control_sealed {
	struct shai_control_header header;
	uint64_t id; /* of the call's notification */
	int32_t pid; /* of the worker */
	uint32_t reserved;
};

struct shai_control_compared {
	struct shai_control_header header;
	uint64_t id;    /* that of the question */
	int32_t pid;    /* that of the question */
	uint32_t equal; /* 0 or 1; 0: the worker is killed */
};

/* ---------------------------------------------------- supervisor to monitor */

struct shai_control_started {
	struct shai_control_header header;
	int32_t pid; /* of the launcher, which becomes the zygote */
	uint32_t reserved;
};

struct shai_control_ended {
	struct shai_control_header header;
	uint32_t status; /* of the zygote, as wait(2) returns it */
	uint32_t reserved;
};

struct shai_control_notification {
	struct shai_control_header header;
	uint64_t session; /* 0: the caller has none */
	struct seccomp_notif notification;
};

struct shai_control_ask_bind {
	struct shai_control_header header;
	uint64_t session;
	uint64_t sequence; /* of the worker's SHAI_AUTHENTICATE */
	uint32_t slot;
	uint32_t reserved;
	char principal[SHAI_NAME_MAX]; /* verified */
	uint8_t peer[SHAI_ADDRESS_SIZE];
	char region[SHAI_NAME_MAX]; /* of peer; empty when unknown */
};

enum shai_event_kind {
	SHAI_EVENT_ACCEPTED = 1,  /* a session began; reason is the region of its address */
	SHAI_EVENT_BOUND = 2,     /* a session has a user; costs one credit */
	SHAI_EVENT_REFUSED = 3,   /* a login was refused */
	SHAI_EVENT_VIOLATION = 4, /* a message or a channel's record that breaks the protocol */
	SHAI_EVENT_ENDED = 5,     /* a session ended */
	SHAI_EVENT_LIMIT = 6,     /* a connection or a login was over a limit */
	SHAI_EVENT_WORKER = 7     /* a worker died without a session */
};

/* Of SHAI_EVENT_ENDED: the supervisor ended the session; no other record gives the reason. */
#define SHAI_EVENT_DECIDED 1u
/* Of SHAI_EVENT_ENDED: the session ended by the roll-back of its worker, which goes on. */
#define SHAI_EVENT_ROLLED_BACK 2u

/* Session identifiers count from 1, and a supervisor never uses one again. */
struct shai_control_event {
	uint32_t kind;  /* enum shai_event_kind */
	int32_t worker; /* its pid, 0 if there is none */
	uint64_t session;
	int64_t when; /* nanoseconds since 1970 */
	uint32_t slot;
	uint32_t latency_us; /* of what the event is about */
	uint32_t mode;       /* enum shai_mode, of the session */
	uint32_t flags;      /* SHAI_EVENT_DECIDED, SHAI_EVENT_ROLLED_BACK */
	uint8_t peer[SHAI_ADDRESS_SIZE];
	uint64_t counters[SHAI_COUNTERS_COUNT]; /* of SHAI_EVENT_ENDED, as the worker said them */
	char principal[SHAI_NAME_MAX];
	char instance[SHAI_NAME_MAX];
	char reason[SHAI_REASON_MAX];
};

/* count struct shai_control_event follow. */
struct shai_control_events {
	struct shai_control_header header;
	uint32_t count; /* 1..SHAI_EVENTS_MAX */
	uint32_t reserved;
};

struct shai_control_counts {
	struct shai_control_header header;
	uint32_t idle;        /* workers that wait for a connection */
	uint32_t rolled_back; /* workers that live and serve one session after the other */
	uint32_t forked;      /* workers that live and serve one */
	uint32_t reserved;
	uint64_t opens; /* documents opened for workers without a question, since the start */
};

/* The worker has been rolled back, and has no session before the answer. */
struct shai_control_compare {
	struct shai_control_header header;
	uint64_t id; /* of the notification of its accept4, which waits meanwhile */
	int32_t pid;
	uint32_t reserved;
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are read in place");
static_assert(sizeof(struct shai_control_header) == 8, "no padding");
static_assert(sizeof(struct shai_control_settings) == 248, "no padding");
static_assert(sizeof(struct shai_control_end_of_slot) == 8, "no padding");
static_assert(sizeof(struct shai_control_slot) == 112, "no padding");
static_assert(sizeof(struct shai_control_key) == 144, "no padding");
static_assert(sizeof(struct shai_control_region) == 120, "no padding");
static_assert(sizeof(struct shai_control_regions) == 24, "no padding");
static_assert(sizeof(struct shai_control_set) == 512, "no padding");
static_assert(sizeof(struct shai_control_forget) == 464, "no padding");
static_assert(sizeof(struct shai_control_mode) == 16, "no padding");
static_assert(sizeof(struct shai_control_fence) == 16, "no padding");
static_assert(sizeof(struct shai_control_end) == 272, "no padding");
static_assert(sizeof(struct shai_control_bind) == 288, "no padding");
static_assert(sizeof(struct shai_control_relay) == 16, "no padding");
static_assert(sizeof(struct shai_control_credits) == 16, "no padding");
static_assert(sizeof(struct shai_control_store) == 312, "no padding");
static_assert(sizeof(struct shai_control_sealed) == 24, "no padding");
static_assert(sizeof(struct shai_control_compared) == 24, "no padding");
static_assert(sizeof(struct shai_control_started) == 16, "no padding");
static_assert(sizeof(struct shai_control_ended) == 16, "no padding");
static_assert(sizeof(struct shai_control_notification) == 96, "no padding");
static_assert(sizeof(struct shai_control_ask_bind) == 240, "no padding");
static_assert(sizeof(struct shai_control_event) == 544, "no padding");
static_assert(sizeof(struct shai_control_events) == 16, "no padding");
static_assert(sizeof(struct shai_control_counts) == 32, "no padding");
static_assert(sizeof(struct shai_control_compare) == 24, "no padding");
static_assert(sizeof(struct shai_counters) == SHAI_COUNTERS_COUNT * sizeof(uint64_t),
    "an event has room for the counters");
static_assert(
    sizeof(struct shai_control_set) + SHAI_CLASSES_MAX * sizeof(uint32_t) <= SHAI_CONTROL_MAX,
    "the largest set fits");
static_assert(
    sizeof(struct shai_control_regions) + SHAI_REGIONS_MAX * sizeof(struct shai_control_region) <=
	SHAI_CONTROL_MAX,
    "the largest part of the table of regions fits");
static_assert(
    sizeof(struct shai_control_events) + SHAI_EVENTS_MAX * sizeof(struct shai_control_event) <=
	SHAI_CONTROL_MAX,
    "the most events fit");

#endif

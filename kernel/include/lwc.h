/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The system calls of shai.ko: light-weight contexts (lwc(2)) and descriptor
 * channels (shai(4)). This header is the binary interface. Integers have the
 * machine's byte order; structures have no padding. Only 64-bit processes can
 * use it.
 *
 * The numbers of the calls are assigned when the module is loaded; read them
 * from the sysctl variables shai.syscall.<name>.
 */
#ifndef SHAI_LWC_H
#define SHAI_LWC_H

#ifdef _KERNEL
#include <sys/types.h>
#else
#include <stdint.h>
#endif

#define LWC_VERSION 2

/* Names of contexts in place of a descriptor. */
#define LWC_SELF (-1) /* the current context */
#define LWC_CALLER                                                             \
	(-2) /* the context that called or was redirected to this one */

/* What a descriptor allows its holder to do with the context. */
#define LWC_RIGHT_SWITCH 0x01u
#define LWC_RIGHT_CREATE 0x02u  /* use it as the source of another */
#define LWC_RIGHT_OVERLAY 0x04u /* map its memory */
#define LWC_RIGHT_SYSCALL 0x08u /* make system calls with its resources */
#define LWC_RIGHT_CONFINE 0x10u /* redirect more of its calls */
#define LWC_RIGHT_GRANT 0x20u   /* add conduits to what it may receive */
#define LWC_RIGHTS_ALL 0x3fu

/* How a new context gets a range of memory, or descriptors. */
#define LWC_COPY                                                               \
	0u /* memory: copy-on-write. descriptor: the file, opened again */
#define LWC_SHARE                                                              \
	1u          /* memory: the same pages. descriptor: the same open file */
#define LWC_OMIT 2u /* left out */

struct lwc_range {
	uint64_t start;  /* multiple of the page size */
	uint64_t length; /* likewise, not 0 */
	uint32_t mode;   /* LWC_COPY, LWC_SHARE, LWC_OMIT */
	uint32_t reserved;
};

struct lwc_descriptors {
	int32_t first;
	int32_t last; /* included */
	uint32_t mode;
	uint32_t reserved;
};

#define LWC_RANGES_MAX 64
#define LWC_DESCRIPTORS_MAX 64

/* One bit per system call number, lowest bit of the lowest word first. */
#define LWC_CALL_WORDS 16
#define LWC_CALLS_MAX (LWC_CALL_WORDS * 64)

#define LWC_MONITORED 0x1u /* redirect refused calls to the field monitor */
#define LWC_CAPABILITY_MODE 0x2u /* as after cap_enter(2) */

struct lwc_spec {
	uint32_t version; /* LWC_VERSION */
	uint32_t flags;   /* LWC_MONITORED, LWC_CAPABILITY_MODE */
	int32_t source;   /* LWC_SELF, or a descriptor: the context to copy */
	int32_t monitor;  /* LWC_SELF, or a descriptor; with LWC_MONITORED */
	const struct lwc_range *ranges; /* later ones overrule earlier ones */
	const struct lwc_descriptors *descriptors;
	uint32_t range_count;
	uint32_t descriptor_count;
	uint64_t redirected[LWC_CALL_WORDS]; /* further calls that go to the
						monitor */
};

#define LWC_EVENT_CREATED 1u  /* lwc_create returned to its caller */
#define LWC_EVENT_SWITCHED 2u /* another context switched to this one */
#define LWC_EVENT_REDIRECTED                                                   \
	3u /* another context's system call was redirected */

#define LWC_ARGUMENTS 8

struct lwc_event {
	uint32_t kind;
	int32_t descriptor; /* CREATED: of the new context; else -1 */
	uint64_t
	    context; /* id of the new context, or of the one that was left */
	uint64_t argument; /* SWITCHED: lwc_message.argument */
	int32_t call;      /* REDIRECTED: the number of the call */
	int32_t
	    error; /* REDIRECTED: the errno with which it would have failed */
	uint64_t arguments[LWC_ARGUMENTS];
};

#define LWC_CALL 0x1u /* the target may switch back to LWC_CALLER */

struct lwc_message {
	uint64_t
	    argument;   /* for the event; for a redirected call: its result */
	int32_t error;  /* for a redirected call: 0, or its errno */
	uint32_t flags; /* LWC_CALL */
};

struct lwc_restriction {
	uint32_t rights; /* rights of the descriptor that remain */
	uint32_t flags;  /* LWC_CAPABILITY_MODE, with LWC_SELF only */
	uint64_t redirected[LWC_CALL_WORDS]; /* added to the context's */
};

#define LWC_OVERLAY_WRITE                                                      \
	0x1u /* map pages writable here that are writable there */

struct lwc_overlay {
	uint64_t start;  /* in the other context */
	uint64_t length; /* multiple of the page size, not 0 */
	uint64_t here;   /* where to map it; the range must be free */
	uint32_t flags;
	uint32_t reserved;
};

/* The resources that a call on behalf of another context uses. */
#define LWC_USE_MEMORY 0x1u
#define LWC_USE_FILES 0x2u
#define LWC_USE_CREDENTIALS 0x4u

/* ------------------------------------------------------- descriptor channels
 */

#define SHAI_TRANSFER_MAX 64 /* descriptors in one transfer */
#define SHAI_GRANT_MAX 1024  /* conduits in one call */

#define SHAI_CONDUIT_READ 0x1u
#define SHAI_CONDUIT_WRITE 0x2u

/* A conduit of which a context may receive descriptors, identified as by
 * stat(2). */
struct shai_conduit {
	uint64_t device;
	uint64_t file;
	uint32_t rights; /* SHAI_CONDUIT_* */
	uint32_t reserved;
};

#ifndef _KERNEL
/*
 * The calls, as a program's own wrappers should declare them. After a failure
 * they return -1 with errno; lwc(2) and shai(4) have the tables.
 *
 * int lwc_create(const struct lwc_spec *, struct lwc_event *);
 * int lwc_switch(int context, const struct lwc_message *, struct lwc_event *);
 * int lwc_restrict(int context, const struct lwc_restriction *);
 * int lwc_overlay(int context, const struct lwc_overlay *);
 * long lwc_syscall(int context, int resources, int number,
 *     const uint64_t arguments[8]);
 * int shai_grant(int context, const struct shai_conduit *, int count);
 * int shai_channel(int ends[2]);		ends[0] receives, ends[1] sends
 * int shai_send(int channel, const int *descriptors, int count);
 * int shai_receive(int channel, int *descriptors, int count);	returns how many
 */
#endif

#endif

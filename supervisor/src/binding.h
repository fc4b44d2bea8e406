/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Binds sessions to their users: who logs in gets the capability set of the instance.
 */
#ifndef SUPERVISOR_BINDING_H
#define SUPERVISOR_BINDING_H

#include "supervisor.h"

/* A worker's SHAI_AUTHENTICATE. */
void binding_login(
    struct supervisor *s, struct session *session, const struct worker_record *record);

/* The monitor's answer to a question about a login. */
void binding_answered(struct supervisor *s, const struct shai_control_bind *answer);

/*
 * Gives a set that has come into force to the live sessions of its instance in mode shai,
 * too. Their workers learn of it with the next answer about documents.
 */
void binding_renew(struct supervisor *s, const struct shai_control_set *record);

/*
 * Binds a session that waits (SESSION_WAITING), if what it waits for is there now. Refuses
 * the login if for some time nothing could be recorded.
 */
void binding_resume(struct supervisor *s, struct session *session);

/* When binding_resume refuses a session's login, INT64_MAX if it does not. */
int64_t binding_deadline(const struct supervisor *s, const struct session *session);

#endif

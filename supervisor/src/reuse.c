/* SPDX-License-Identifier: BSD-2-Clause */
#include "reuse.h"

#include <errno.h>

#include "monitor.h"
#include "notifications.h"
#include "sessions.h"
#include "worker_messages.h"
#include "workers.h"

#define COMPARED_EACH 512   /* so many sessions of a worker, it is compared; and after the first */
#define SOILED_MAX (SECOND) /* so long after its session, a worker is rolled back or killed */

static const char unsaid[] = "the worker ended the session without saying so";

void
reuse_sealed(struct supervisor *s, const struct shai_control_sealed *record)
{
	struct worker *worker = workers_known(s, record->pid);

	if (worker == NULL || worker->state != WORKER_BORN || worker->sealing != record->id)
		return; /* it has died since */
	worker->sealed = notification_continue(s, record->id) == 0;
	s->sealed += worker->sealed;
}

/*
 * Whether a worker's sessions had their connection where new ones have none. Nothing could take
 * the former number's place as it was: the null device that is placed there has flags that
 * sessions can set, and other workers, and later sessions, can see.
 */
static bool
has_other_connection(const struct supervisor *s, const struct worker *worker)
{
	return worker->connection != 0 && worker->connection != worker_connection(s->mode);
}

/*
 * Whether a worker, whose session is over, may have another one. More may wait than are forked
 * ahead: else each session would have one forked at its beginning, and one killed at its end.
 */
static bool
is_kept(const struct supervisor *s, const struct worker *worker)
{
	if (s->terminating || s->lost || worker->sessions >= s->settings.sessions_per_worker ||
	    has_other_connection(s, worker))
		return false;
	return workers_waiting(s) / 2 < s->settings.idle_max || s->queue.count > 0;
}

/* Whether the monitor is to compare a worker with what it was before its first session. */
static bool
is_sample(const struct worker *worker)
{
	return worker->compared != worker->sessions &&
	       (worker->sessions == 1 || worker->sessions % COMPARED_EACH == 0);
}

/* Rolls a worker back, without a session. It waits in accept4 again when this is done. */
static void
roll_back(struct supervisor *s, struct worker *worker)
{
	/* What the worker cannot close itself. */
	if (notification_place(s, worker->waiting, s->silence, worker->connection, false) != 0 ||
	    notification_place(s, worker->waiting, s->silence, SHAI_FD_MONITOR, false) != 0) {
		worker_dismiss(s, worker);
		return;
	}
	worker->soiled = false;
	worker_become(s, worker, WORKER_RETURNING);
	notification_fail(s, worker->waiting, EAGAIN);
}

static void
compare(struct supervisor *s, struct worker *worker)
{
	const struct shai_control_compare record = {
	    .header = monitor_header(SHAI_CONTROL_COMPARE, sizeof(record)),
	    .id = worker->waiting,
	    .pid = worker->pid};

	worker->compared = worker->sessions;
	if (monitor_send(s, &record, sizeof(record), -1) == 0)
		worker_become(s, worker, WORKER_COMPARED);
	else
		worker_dismiss(s, worker);
}

void
reuse_leaves(struct supervisor *s, struct worker *worker)
{
	worker->returned = loop_now();
	if (worker->returned + SOILED_MAX < s->soiled_over)
		s->soiled_over = worker->returned + SOILED_MAX;
}

/* A worker with a session calls accept4 again. */
static void
end_session(struct supervisor *s, struct worker *worker)
{
	struct session *session = worker->session;

	if (!session_lives(session))
		return; /* it is killed already */
	worker_messages_read(s, session);
	if (!is_kept(s, worker)) {
		session_end(s, session, session->reset ? "" : unsaid);
		return;
	}
	workers_back_off(s, false);
	worker_become(s, worker, WORKER_IDLE);
	reuse_leaves(s, worker);
	if (is_sample(worker))
		roll_back(s, worker);
	session_over(s, session, unsaid, SHAI_EVENT_ROLLED_BACK);
}

/* A worker that has been rolled back may have another session, if the mode is still the same. */
static void
become_idle(struct supervisor *s, struct worker *worker)
{
	if (has_other_connection(s, worker))
		worker_dismiss(s, worker);
	else
		worker_become(s, worker, WORKER_IDLE);
}

/* A worker that is not sealed waits for its one session, whose channel is read here. */
static void
note_unsealed(struct supervisor *s, struct worker *worker)
{
	if (worker->sealing != 0)
		s->refused_seal = true;
	gate_free(worker->grant);
	worker->grant = NULL;
}

void
reuse_waits(struct supervisor *s, struct worker *worker, uint64_t call)
{
	worker->waiting = call;
	if (!worker->sealed)
		note_unsealed(s, worker);
	if (worker->state == WORKER_SERVING)
		end_session(s, worker);
	else if (worker->state == WORKER_RETURNING && is_sample(worker))
		compare(s, worker);
	else if (worker->state == WORKER_BORN || worker->state == WORKER_RETURNING)
		become_idle(s, worker);
}

void
reuse_compared(struct supervisor *s, const struct shai_control_compared *record)
{
	struct worker *worker = workers_known(s, record->pid);

	if (worker == NULL || worker->state != WORKER_COMPARED || worker->waiting != record->id)
		return; /* it has died since */
	if (record->equal == 0)
		worker_dismiss(s, worker);
	else
		become_idle(s, worker);
}

void
reuse_follow_mode(struct supervisor *s)
{
	for (uint32_t i = 0; i < s->settings.slots; i++)
		if (s->worker[i].state == WORKER_IDLE && has_other_connection(s, &s->worker[i]))
			worker_dismiss(s, &s->worker[i]);
}

/* Whether a worker has said that its session is over, and has not returned. */
static bool
stays(const struct worker *worker)
{
	return worker->state == WORKER_SERVING && worker->sealed &&
	       session_lives(worker->session) && worker->session->reset;
}

int64_t
reuse_tend(struct supervisor *s)
{
	int64_t now = loop_now(), next = INT64_MAX;

	if (now < s->soiled_over)
		return s->soiled_over;
	for (uint32_t i = 0; i < s->settings.slots; i++) {
		struct worker *worker = &s->worker[i];
		int64_t over = worker->returned + SOILED_MAX;

		if (!stays(worker) && (worker->state != WORKER_IDLE || !worker->soiled))
			continue;
		if (over > now)
			next = over < next ? over : next;
		else if (stays(worker))
			session_end(s, worker->session, "");
		else
			roll_back(s, worker);
	}
	s->soiled_over = next;
	return next;
}

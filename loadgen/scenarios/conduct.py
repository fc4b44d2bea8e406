# SPDX-License-Identifier: BSD-2-Clause
"""Conducts a run in the process that does so: the only one, or Locust's master. Workers only make load."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gevent
from locust.runners import STATE_MISSING, MasterRunner

from loadgen.driving import exporting
from loadgen.driving.metrics import OK, TallyCollector
from loadgen.scenarios import outcomes
from loadgen.scenarios.outcomes import Outcome, Setting, Status
from loadgen.scenarios.recording import Recording

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from locust.env import Environment
    from locust.rpc import Message

    from loadgen.driving.metrics import Tally
    from loadgen.scenarios.definitions import Scenario
    from loadgen.scenarios.recording import Part
    from loadgen.scenarios.targets import Target
    from loadgen.thresholds import Threshold

_LAST_REPORT_SECONDS = 60.0
_LINE_SECONDS = 10
"""How often progress is told where it cannot be overwritten."""

REPORT = "scenario"
"""The message in which a worker tells its users' number and what they have done since the last one."""

_log = logging.getLogger(__name__)


class Conductor:
    """Follows runs from their start to their result, and exports what all processes count."""

    def __init__(
        self,
        *,
        scenario: Scenario,
        environment: Environment,
        options: Namespace,
        target: Target,
        tally: Tally,
        judged: Sequence[Threshold],
    ) -> None:
        self._scenario = scenario
        self._environment = environment
        self._options = options
        self._target = target
        self._judged = judged
        self._counted = tally[scenario.name, target.pipeline, ""]
        self._waiting: set[str] | None = None
        """Workers whose last report is awaited; None while there is load."""
        self._give_up = 0.0
        self._complete = False
        self._late = 0
        """Processes whose last report did not come."""
        self._lost: set[str] = set()
        """Workers that were gone when their last report was awaited."""
        self._started: set[str] = set()
        """The workers with which the run began."""
        self.interrupted = False
        """Whether somebody has asked for the end of the process."""
        self._setting: Setting | None = None
        """Of the run that is under way."""
        self._written = False
        """Whether there are results."""
        self.recording = Recording(self._counted)
        events = environment.events
        collector = TallyCollector(tally, self._users)
        self._exporting = contextlib.ExitStack()
        self._exporter = self._exporting.enter_context(exporting.served(collector, target.discovery, _log.warning))
        events.test_start.add_listener(self._begin)  # type: ignore[no-untyped-call]
        events.test_stop.add_listener(self._end)  # type: ignore[no-untyped-call]
        events.quitting.add_listener(self._quit)  # type: ignore[no-untyped-call]
        events.quit.add_listener(self._write_statistics)  # type: ignore[no-untyped-call]

        self._tally = tally
        if isinstance(environment.runner, MasterRunner):
            environment.runner.register_message(REPORT, self._add)

    @property
    def seconds(self) -> float:
        """How long the load takes."""
        return float(self._chosen.run_time or self._scenario.seconds[self._target.size])

    @property
    def _chosen(self) -> Namespace:
        """Locust's options, of which its page changes the number of users and the time."""
        if self._environment.parsed_options is None:
            raise RuntimeError("a run is conducted by the locust command")
        found: Namespace = self._environment.parsed_options
        return found

    def parts(self) -> list[Part]:
        """Return the phases of the present run, or of the last one, and the whole run."""
        return self.recording.parts()

    def is_over(self) -> bool:
        """Whether all users have left, and all they did is counted; asked again and again after the load's end."""
        self.recording.end()
        if self._waiting is None:
            self._waiting = self._started | set(self._workers())
            self._give_up = time.monotonic() + _LAST_REPORT_SECONDS
        gone = self._waiting - set(self._workers())
        self._lost |= gone
        self._waiting -= gone
        # A master learns the number of its workers' users late, and their last counts later.
        local = not isinstance(self._environment.runner, MasterRunner)
        self._complete = not self._waiting and not (local and self._environment.runner.user_count)  # type: ignore[union-attr]
        if not self._complete and time.monotonic() > self._give_up:
            self._late = max(1, len(self._waiting))
            return True
        return self._complete

    def _add(self, msg: Message, **_: Any) -> None:
        """Add what a worker has counted since its last report."""
        self._tally.add(msg.data["tally"])
        if self._waiting is not None and msg.data["users"] == 0:
            self._waiting.discard(msg.node_id)
            self._lost.discard(msg.node_id)

    def _workers(self) -> list[str]:
        runner = self._environment.runner
        if not isinstance(runner, MasterRunner):
            return []
        return [name for name, worker in runner.clients.items() if worker.state != STATE_MISSING]

    def _users(self) -> dict[tuple[str, str], int]:
        runner = self._environment.runner
        return {(self._scenario.name, self._target.pipeline): runner.user_count if runner else 0}

    def _begin(self, **_: Any) -> None:
        self._waiting = None
        self._complete = False
        self._late = 0
        self._lost = set()
        self._started = set(self._workers())
        self.recording = Recording(self._counted)
        self.recording.enter(self._scenario.phases[0].name)
        self._setting = Setting(
            self._environment.host or "",
            self._target.pipeline,
            self._chosen.num_users,
            self.seconds,
            max(1, len(self._started)),
            self._options.seed,
        )
        if self._options.headless:
            gevent.spawn(self._tell, self.recording)

    def _end(self, **_: Any) -> None:
        setting, self._setting = self._setting, None
        if setting is None:
            return  # Locust ends runs that have not begun, too
        self.recording.end()
        parts = self.recording.parts()
        runner = self._environment.runner
        errors = {f"{one.method} {one.name}: {one.error}": one.occurrences for one in runner.stats.errors.values()}  # type: ignore[union-attr]
        broken = {one["msg"]: one["count"] for one in runner.exceptions.values()}  # type: ignore[union-attr]
        kept = outcomes.frequent(errors | broken)
        judged = outcomes.judge(self._judged, parts)
        outcome = Outcome(
            self._scenario,
            setting,
            parts,
            kept,
            judged,
            complete=self._complete,
            lost=self._losses(),
            late=self._late,
        )
        written = self._write(outcome)
        if self._options.headless:
            failed = broken or not written
            self._environment.process_exit_code = int(Status.FAILED if failed else outcome.status)
        if self._options.headless and self._options.output == "json":
            print(json.dumps(outcome.plain(), indent=2, ensure_ascii=False), flush=True)
            for reason in filter(None, [*outcomes.frequent(broken), outcome.unjudged]):
                print(f"locust: {outcomes.line(reason)}", file=sys.stderr, flush=True)
        else:
            print(f"\n{outcome.table()}\n", flush=True)

    def _losses(self) -> int:
        """Return how many workers have ended with counts that nobody got.

        A worker may leave when Ctrl-C reaches it, too: that is no loss. Nor is it one when Locust hears no more of a
        worker that has told its last counts.
        """
        if self.interrupted:
            return 0
        awaited = self._started if self._waiting is None else self._waiting
        return len(self._lost | (awaited - set(self._workers())))

    def _write(self, outcome: Outcome) -> bool:
        """Write the results if they are wanted; return whether they are there."""
        if self._options.results:
            try:
                outcomes.write(outcome, Path(self._options.results))
            except OSError as error:
                print(f"locust: cannot write the results: {error}", file=sys.stderr, flush=True)
                return False
            self._written = True
        return True

    def _write_statistics(self, **_: Any) -> None:
        """Write Locust's own counts beside the results: its workers tell the last ones when they end."""
        if self._written and self._environment.runner is not None:
            try:
                outcomes.write_statistics(self._environment.runner.stats.serialize_stats(), Path(self._options.results))
            except OSError as error:
                print(f"locust: cannot write its statistics: {error}", file=sys.stderr, flush=True)

    def _quit(self, **_: Any) -> None:
        """End the run that is under way, if there is one, while its status still counts."""
        if self._setting is not None and self._environment.runner is not None:
            self._environment.runner.quit()
        try:
            self._exporter.await_last_scrape(exporting.LAST_SCRAPE_SECONDS)
        finally:
            self._exporting.close()

    def _tell(self, recording: Recording) -> None:
        """Tell the progress of a run: in one line on a terminal, else now and then."""
        over = sys.stderr.isatty()
        last, since = 0, time.monotonic()
        for second in range(1, int(self.seconds) + 1):
            gevent.sleep(1)
            if recording is not self.recording or self._waiting is not None:
                break
            if over or second % _LINE_SECONDS == 0:
                now, answered = time.monotonic(), self._counted.queries[OK]
                rate = (answered - last) / (now - since)
                last, since = answered, now
                users = self._environment.runner.user_count  # type: ignore[union-attr]
                line = f"{second} of {self.seconds:.0f} s, {recording.phase}: {users} users, {rate:.0f} queries/s"
                print(f"\r\033[K{line}" if over else line, end="" if over else "\n", file=sys.stderr, flush=True)
        if over:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

"""Runs one controller: events to keys, keys to reconciles, outcomes to retries.

Guarantees: never two reconciles of one key at a time, at most `concurrency` at once; a reconcile is gather, decide (with
answers, in bounded rounds, nothing written in between: rule 1), perform; one that raises or takes too long is logged,
counted, told as an Event and retried with back-off, and never ends the controller; conflicts and unknown outcomes are
retried quietly; open writes are settled before the key is worked on again (rule 2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from quorate.api.meta import Object
from quorate.machinery.cache import Caches
from quorate.machinery.clock import Clock
from quorate.machinery.controller import AnySpec, AnyWatch
from quorate.machinery.effects import Answer, Answers, Decision, Entropy, Request
from quorate.machinery.events import EventRecorder
from quorate.machinery.executor import Executor, Job, Result
from quorate.machinery.logs import Logger
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.queue import Priority, Queue, QueueClosed
from quorate.machinery.store import Change, Origin
from quorate.machinery.tasks import OrderedTaskGroup

MAX_ROUNDS = 8
"""How often one reconcile may ask before it is an error."""

Record: TypeAlias = Callable[[str, str, object, Answers, float, Decision], None]
"""Told every decision before it is performed: controller, key, snapshot, answers, time, decision."""


@dataclass(frozen=True)
class Shell:
    """What a worker uses of its process."""

    caches: Caches
    executor: Executor
    events: EventRecorder
    clock: Clock
    metrics: MachineryMetrics
    log: Logger
    entropy: Callable[[int], bytes]
    record: Record | None = None


class ReconcileError(Exception):
    """A reconcile failed for a reason that is not an exception."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class Worker:
    """See the module docstring."""

    def __init__(self, spec: AnySpec, shell: Shell) -> None:
        self.spec = spec
        self.queue = Queue(spec.name, shell.clock, shell.metrics)
        self._shell = shell
        self._log = shell.log.bind(controller=spec.name)
        self._slots = asyncio.Semaphore(spec.concurrency)
        self._reconciles = 0
        for kind in spec.reads:
            shell.caches.follow(kind)
        for position, watch in enumerate(spec.watches):
            shell.caches.follow(watch.kind).subscribe(partial(self._on_change, watch, position == 0))

    async def run(self) -> None:
        """Work the queue until `close`; then the reconciles that run are finished."""
        async with OrderedTaskGroup() as group:
            while True:
                await self._slots.acquire()
                try:
                    key = await self.queue.get()
                except QueueClosed:
                    return
                group.create_task(self._work(key), name=f"{self.spec.name}/{key}")

    def close(self) -> None:
        """Start no reconcile any more."""
        self.queue.close()

    def _on_change(self, watch: AnyWatch, primary: bool, change: Change[Object]) -> None:
        """A listener of the caches: an exception in a predicate must not stop the watch for everybody."""
        try:
            if change.origin is Origin.RESYNC:
                if not primary:
                    return
            elif not watch.predicate(change.old, change.new):
                return
            keys = tuple(watch.keys(change.old, change.new, self._shell.caches))
        except Exception as error:
            obj = change.new or change.old
            name = obj.metadata.name if obj else ""
            self._log.error("predicate or mapping failed", kind=watch.kind.__name__, object=name, error=repr(error))
            self._shell.metrics.reconcile_errors.inc(self.spec.name)
            return
        priority = Priority.HIGH if change.origin is Origin.LIVE else Priority.LOW
        for key in keys:
            self.queue.add(key, priority=priority, after=watch.settle)

    async def _work(self, key: str) -> None:
        shell, name = self._shell, self.spec.name
        self._reconciles += 1
        log = self._log.bind(object=key, reconcile_id=f"{name}-{self._reconciles}")
        shell.metrics.active_workers.inc(name)
        started = shell.clock.monotonic()
        limit = asyncio.timeout(self.spec.timeout)
        try:
            async with limit:
                result = await self._reconcile(Job(name, key, log))
        except Exception as error:
            retry_after = error.retry_after if isinstance(error, ReconcileError) else 0.0
            text = str(error) if isinstance(error, ReconcileError) else f"{type(error).__name__}: {error}"
            if limit.expired():
                text = f"reconcile took longer than {self.spec.timeout:g} s"
            self._fail(key, log, text, retry_after)
            result = "error"
        finally:
            self.queue.done(key)
            shell.metrics.active_workers.inc(name, by=-1)
            self._slots.release()
        shell.metrics.reconciles.inc(name, result)
        shell.metrics.reconcile_time.observe(shell.clock.monotonic() - started, name)

    def _fail(self, key: str, log: Logger, message: str, retry_after: float) -> None:
        self._shell.metrics.reconcile_errors.inc(self.spec.name)
        log.error("reconcile failed", error=message, failures=self.queue.failures(key) + 1)
        about = self._primary(key)
        if about is not None:
            self._shell.events.emit(self.spec.name, about, "Warning", "ReconcileError", message)
        self.queue.add_rate_limited(key, at_least=retry_after)

    def _primary(self, key: str) -> Object | None:
        namespace, _, name = key.rpartition("/")
        return self._shell.caches.follow(self.spec.watches[0].kind).peek((namespace, name))

    async def _reconcile(self, job: Job) -> str:
        """One pass; the result is the label of the metric."""
        await self._shell.executor.settle(job)
        decision = await self._decide(job)
        outcome = await self._shell.executor.perform(job, decision.effects)
        match outcome.result:
            case Result.DONE:
                pass
            case Result.CONFLICT | Result.UNKNOWN as result:
                job.log.debug("decide again", result=result.value, why=outcome.error)
                self.queue.add_rate_limited(job.key)
                return result.value
            case Result.NOT_LEADING:
                job.log.info("not leading, nothing is written")
                return Result.NOT_LEADING.value
            case Result.FAILED:
                raise ReconcileError(outcome.error, outcome.retry_after)
        if decision.wake_after is not None:
            self.queue.add(job.key, after=max(decision.wake_after, 0.001))
        if decision.error:
            raise ReconcileError(decision.error)
        if decision.requeue:
            self.queue.add_rate_limited(job.key)
            return "requeue"
        self.queue.forget(job.key)
        return "requeue_after" if decision.wake_after is not None else "success"

    async def _decide(self, job: Job) -> Decision:
        """Decide, asking for what is missing, until the decision is complete (rule 1)."""
        spec, shell = self.spec, self._shell
        snapshot = spec.gather(shell.caches, job.key)
        answers: dict[Request, Answer] = {}
        for _ in range(MAX_ROUNDS):
            now = shell.clock.now()
            decision = spec.decide(snapshot, answers, now)
            missing = tuple(request for request in decision.ask if request not in answers)
            if decision.ask and not missing:
                raise ReconcileError("the decision asks again for what was answered")
            if not missing:
                if shell.record is not None:
                    shell.record(spec.name, job.key, snapshot, answers, now, decision)
                return decision
            for request in missing:
                answers[request] = await self._answer(request)
        raise ReconcileError(f"no decision after {MAX_ROUNDS} rounds of questions")

    async def _answer(self, request: Request) -> Answer:
        if isinstance(request, Entropy):
            return self._shell.entropy(request.size)
        if self.spec.answer is None:
            raise ReconcileError(f"nobody answers {type(request).__name__}")
        return await self.spec.answer(request)

"""Performs the effects of decisions under the nine rules of the design.

Guarantees:

* effects are performed in order; the first conflict, unknown outcome or failure ends the list, and the key is decided
  again from the cache, never resumed from memory (rules 2 and 4);
* an object whose write was refused or has no known outcome is read live into the cache before its key is worked on
  again; a write is marked open before it is sent, so this holds for cancelled and timed-out reconciles, too (rule 2);
* before an effect that names what it was decided from, those objects are read live; another version means conflict
  (rule 3). Versions that this very decision wrote count as the ones it was decided from;
* deletes and finalizer removals carry uid and resource version; every destructive effect leaves a log line and an
  Event (rules 3 and 9);
* reports are rebased onto the newest cached object, one in flight per object (rule 5);
* nothing is written once `may_write` says no: a paused former leader stops at its next effect.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias, assert_never

import msgspec

from quorate.api.meta import Object, ObjectRef
from quorate.api.resources import ref_of, resource_of
from quorate.machinery import errors, patches
from quorate.machinery.cache import Caches
from quorate.machinery.chain import Chain, Place, place
from quorate.machinery.client import Client
from quorate.machinery.effects import Create, Delete, Effect, Emit, Half, Mode, Observe, Patch
from quorate.machinery.events import EventRecorder
from quorate.machinery.logs import Logger
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry, conventional
from quorate.machinery.tasks import KeyedLocks

SendObject: TypeAlias = Callable[[], Awaitable[Object | None]]


class Result(Enum):
    """How a list of effects ended."""

    DONE = "done"
    CONFLICT = "conflict"
    """Somebody else wrote: decide again, quietly."""
    UNKNOWN = "unknown"
    """A write had no answer: decide again from what a live read found."""
    FAILED = "failed"
    """The server refused, or a live read was impossible: back off, visibly."""
    NOT_LEADING = "not-leading"
    """This process may not write any more."""


@dataclass(frozen=True)
class Outcome:
    """How a list of effects ended, and why."""

    result: Result
    performed: int
    error: str = ""
    retry_after: float = 0.0


@dataclass(frozen=True)
class Job:
    """Whose effects are performed."""

    controller: str
    key: str
    log: Logger


Gate: TypeAlias = Callable[[Job, Effect], None]
"""Called before each effect; may raise. Crash injection stops a process here after k effects."""


_NEEDS_LOOK = (errors.Conflict, errors.AlreadyExists, errors.NotFound)
"""Refusals which say that the cache is behind."""


class _Conflict(Exception):
    """The objects an effect was decided from are not what they were."""


class _NotLeading(Exception):
    """This process may not write any more."""


class Executor:
    """See the module docstring. One per process, shared by its controllers."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        events: EventRecorder,
        registry: Registry,
        metrics: MachineryMetrics,
        *,
        may_write: Callable[[], bool] = lambda: True,
        gate: Gate | None = None,
    ) -> None:
        self._client = client
        self._caches = caches
        self._events = events
        self._registry = registry
        self._metrics = metrics
        self._may_write = may_write
        self._gate = gate
        self._open: dict[tuple[str, str], dict[Place, ObjectRef]] = {}
        """Writes without a definite answer, by controller and key."""
        self._reports: KeyedLocks[Place] = KeyedLocks()

    async def settle(self, job: Job) -> None:
        """Read the objects of open writes live into the cache; raises ApiError while that is impossible (rule 2)."""
        opened = self._open.get((job.controller, job.key))
        while opened:
            where, ref = next(iter(opened.items()))
            await self._read_live(ref)
            opened.pop(where, None)
        self._open.pop((job.controller, job.key), None)

    async def perform(self, job: Job, effects: tuple[Effect, ...]) -> Outcome:
        """Perform effects in order until the first that does not succeed."""
        chain = Chain()
        for position, effect in enumerate(effects):
            if self._gate is not None:
                self._gate(job, effect)
            outcome = await self._attempt(job, effect, chain, position)
            self._count(job, effect, outcome.result)
            if outcome.result is not Result.DONE:
                return outcome
        return Outcome(Result.DONE, len(effects))

    async def _attempt(self, job: Job, effect: Effect, chain: Chain, position: int) -> Outcome:
        try:
            await self._perform(job, effect, chain)
            return Outcome(Result.DONE, position + 1)
        except _NotLeading:
            return Outcome(Result.NOT_LEADING, position, "this process may not write any more")
        except _Conflict as conflict:
            outcome = Outcome(Result.CONFLICT, position, str(conflict))
        except (errors.Conflict, errors.AlreadyExists) as error:
            outcome = Outcome(Result.CONFLICT, position, str(error))
        except (errors.Unavailable, errors.Timeout) as error:
            outcome = Outcome(Result.UNKNOWN, position, str(error))
        except errors.NotFound as error:
            gone = not isinstance(effect, Create)
            outcome = Outcome(Result.CONFLICT if gone else Result.FAILED, position, str(error))
        except errors.ApiError as error:
            outcome = Outcome(Result.FAILED, position, str(error), error.retry_after or 0.0)
        except msgspec.MsgspecError as error:
            outcome = Outcome(Result.FAILED, position, f"the answer cannot be decoded: {error}")
        job.log.debug("effect ended", effect=describe(effect), result=outcome.result.value, error=outcome.error)
        try:
            await self.settle(job)
        except (errors.ApiError, msgspec.MsgspecError) as error:
            return replace(outcome, result=Result.FAILED, error=f"{outcome.error}; live read failed: {error}")
        return outcome

    async def _perform(self, job: Job, effect: Effect, chain: Chain) -> None:
        match effect:
            case Create():
                await self._create(job, effect, chain)
            case Patch():
                await self._patch(job, effect, chain)
            case Delete():
                await self._delete(job, effect, chain)
            case Emit():
                self._events.emit(
                    job.controller, effect.about, effect.type, effect.reason, effect.message, once=effect.once
                )
            case Observe():
                self._observe(effect)
            case _:
                assert_never(effect)

    async def _create(self, job: Job, effect: Create, chain: Chain) -> None:
        if not effect.obj.metadata.name:
            raise ValueError("objects are created under names of our own: an unknown outcome must be readable")
        created = await self._write(job, effect.obj, lambda: self._client.create(effect.obj))
        if created is not None:
            chain.advance(effect.obj, created)

    async def _patch(self, job: Job, effect: Patch, chain: Chain) -> None:
        if effect.mode is Mode.REPORT:
            async with self._reports.hold(place(effect.before)):
                await self._send_patch(job, effect, chain)
        else:
            await self._send_patch(job, effect, chain)

    async def _send_patch(self, job: Job, effect: Patch, chain: Chain) -> None:
        before = effect.before
        destructive = bool(effect.decided_from or _released(effect))
        continues = True  # our write follows what was decided from, with nothing of others in between
        match effect.mode:
            case Mode.DECISION:
                patch = patches.half_patch(before, effect.after, effect.half)
                lock = chain.version(before)
            case Mode.REPORT:
                base = self._newest(before)
                patch = patches.rebase(before, effect.after, base, effect.half)
                lock = chain.version(base)
                continues = lock == chain.version(before)
            case Mode.UNLOCKED:
                patch = patches.half_patch(before, effect.after, effect.half)
                lock, continues = "", False
                if patches.contains_list(patch):
                    raise ValueError(f"an unlocked patch of {describe(effect)} would overwrite a list")
        if not patch:
            return
        await self._check_sources(effect.decided_from, chain)
        if effect.mode is not Mode.UNLOCKED:
            if not lock:
                raise ValueError(f"{describe(effect)} does not know the version it was decided from")
            patch = patches.locked(patch, lock, chain.uid(before) if destructive else "")
        if destructive:
            self._announce(job, effect)
        subresource = "status" if effect.half is Half.STATUS and resource_of(before).status_subresource else ""
        written = await self._write(job, before, lambda: self._client.patch(before, patch, subresource=subresource))
        if written is not None and continues:
            chain.advance(before, written)
        if destructive:
            self._tell(job, effect)

    async def _delete(self, job: Job, effect: Delete, chain: Chain) -> None:
        obj = effect.obj
        if obj.metadata.deleting:
            return
        await self._check_sources(effect.decided_from, chain)
        self._announce(job, effect)
        uid, version = chain.uid(obj), chain.version(obj)
        if not uid or not version:
            raise ValueError(f"{describe(effect)} does not know the incarnation it was decided from")
        try:
            held = await self._write(job, obj, lambda: self._client.delete(obj, uid=uid, resource_version=version))
        except errors.NotFound:
            held = None
            self._close(job, place(obj))
        if held is None:
            self._caches.gone(msgspec.structs.replace(ref_of(obj), uid=uid))
        else:
            chain.advance(obj, held)
        self._tell(job, effect)

    async def _write(self, job: Job, obj: Object, send: SendObject) -> Object | None:
        """One request that changes `obj`: open until it has a definite answer; the answer is visible at once."""
        if not self._may_write():
            raise _NotLeading
        self._open.setdefault((job.controller, job.key), {})[place(obj)] = ref_of(obj)
        try:
            answer = await send()
        except errors.ApiError as error:
            if not (error.outcome_unknown or isinstance(error, _NEEDS_LOOK)):
                self._close(job, place(obj))  # refused for good reason: the object is what it was
            raise
        self._close(job, place(obj))
        if answer is not None:
            self._caches.written(answer)
        return answer

    def _close(self, job: Job, where: Place) -> None:
        opened = self._open.get((job.controller, job.key))
        if opened is not None:
            opened.pop(where, None)
            if not opened:
                del self._open[job.controller, job.key]

    def _newest(self, before: Object) -> Object:
        """The object a report is rebased onto."""
        newest = self._caches.newest(before)
        if newest is None:
            return before
        if before.metadata.uid and newest.metadata.uid != before.metadata.uid:
            raise _Conflict(f"{before.metadata.name} was deleted and created again")
        return newest

    async def _check_sources(self, refs: tuple[ObjectRef, ...], chain: Chain) -> None:
        for ref in refs:
            live = await self._read_live(ref)
            if not ref.uid:
                if live is not None:
                    raise _Conflict(f"{ref.kind} {ref.name} exists by now")
            elif live is None or live.metadata.uid != ref.uid:
                raise _Conflict(f"{ref.kind} {ref.name} is gone")
            elif ref.resource_version and live.metadata.resource_version != chain.expected(ref):
                raise _Conflict(f"{ref.kind} {ref.name} changed")

    async def _read_live(self, ref: ObjectRef) -> Object | None:
        """One read past the cache, into the cache."""
        known = self._caches.find(ref)
        live = await self._client.get_ref(ref)
        if live is not None:
            self._caches.written(live)
        elif known is not None:
            # Known before the read and absent in it: this incarnation is gone, whatever events still say.
            self._caches.gone(ref_of(known))
        return live

    def _announce(self, job: Job, effect: Patch | Delete) -> None:
        sources = " ".join(f"{ref.kind}/{ref.name}@{ref.resource_version}" for ref in effect.decided_from)
        job.log.info(
            "destructive effect",
            effect=describe(effect),
            cause=effect.cause,
            decided_from=sources,
            **dict(effect.audit),
        )

    def _tell(self, job: Job, effect: Patch | Delete) -> None:
        about = effect.obj if isinstance(effect, Delete) else effect.before
        reason = "Deleted" if isinstance(effect, Delete) else "Changed"
        released = () if isinstance(effect, Delete) else _released(effect)
        if released:
            reason = "FinalizerRemoved"
        values = "".join(f", {name}={value}" for name, value in effect.audit)
        self._events.emit(job.controller, about, "Normal", reason, f"{effect.cause}{values}")

    def _observe(self, effect: Observe) -> None:
        metric = self._registry.find(effect.metric) or self._registry.declare(
            conventional(effect.metric, effect.labels)
        )
        metric.record(effect.value, effect.labels)

    def _count(self, job: Job, effect: Effect, result: Result) -> None:
        self._metrics.effects.inc(job.controller, type(effect).__name__, result.value)
        if result is Result.CONFLICT:
            self._metrics.conflicts.inc(job.controller)
        elif result is Result.UNKNOWN:
            self._metrics.unknown_outcomes.inc(job.controller)


def _released(effect: Patch) -> tuple[str, ...]:
    return patches.removed_finalizers(effect.before, effect.after) if effect.half is Half.MAIN else ()


def describe(effect: Effect) -> str:
    """An effect in a log line; never its content, which may be large or secret."""
    match effect:
        case Create(obj=obj):
            return f"create {type(obj).__name__}/{obj.metadata.name}"
        case Patch(before=obj, half=half, mode=mode):
            return f"patch {half.value} of {type(obj).__name__}/{obj.metadata.name} ({mode.value})"
        case Delete(obj=obj):
            return f"delete {type(obj).__name__}/{obj.metadata.name}"
        case Emit(about=obj, reason=reason):
            return f"emit {reason} about {type(obj).__name__}/{obj.metadata.name}"
        case Observe(metric=metric):
            return f"observe {metric}"

"""Kubernetes Events: recorded at once, sent in the background, repeated ones counted.

Guarantees: recording never fails and never waits; the same event about the same object is one Event object whose
count grows, across restarts too (its name is made of its content); an event about a lasting state (`once`) is sent once and
costs no write afterwards; one object cannot flood the API (25 per reason, then one per five minutes); texts are cut to
their limit. What could not be sent is dropped and counted.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace

from quorate.api import event, times
from quorate.api.event import Event, EventSource, ObjectReference
from quorate.api.messages import cut
from quorate.api.meta import Object, ObjectMeta
from quorate.api.resources import resource_of
from quorate.machinery import errors
from quorate.machinery.client import Client
from quorate.machinery.clock import Clock
from quorate.machinery.logs import Logger
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.queue import Bucket

MAX_PENDING = 1_000
MAX_BUCKETS = 4_096
MAX_REMEMBERED = 16_384
"""Lasting states whose event was sent; a forgotten one costs a request that finds its event, or a second event."""
ATTEMPTS = 3
DEFAULT_NAMESPACE = "default"
"""Where events about cluster-wide objects live."""


@dataclass(frozen=True)
class _Pending:
    """An event to be sent, with how often it happened since it was last sent."""

    about: ObjectReference
    namespace: str
    component: str
    type: str
    reason: str
    message: str
    count: int
    first: float
    last: float
    once: bool = False


class EventRecorder:
    """See the module docstring."""

    def __init__(self, client: Client, clock: Clock, metrics: MachineryMetrics, log: Logger, instance: str) -> None:
        self._client = client
        self._clock = clock
        self._metrics = metrics
        self._log = log
        self._instance = instance
        self._pending: dict[str, _Pending] = {}
        self._buckets: dict[tuple[str, str], Bucket] = {}
        self._told: dict[str, None] = {}
        self._changed = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def emit(self, component: str, about: Object, type_: str, reason: str, message: str, *, once: str = "") -> None:
        """Record one event; returns at once. `once` is the identity of a state that lasts."""
        meta = about.metadata
        message = cut(message, event.MESSAGE_LIMIT)
        content = "\0".join((component, meta.uid, type_, reason, once or message)).encode()
        name = f"{meta.name[:200]}.{hashlib.blake2b(content, digest_size=8).hexdigest()}"
        if once and name in self._told:
            return
        now = self._clock.now()
        pending = self._pending.get(name)
        if pending is not None:
            self._pending[name] = replace(pending, count=pending.count + 1, last=now)
            return
        if len(self._pending) >= MAX_PENDING:
            self._metrics.events_dropped.inc("full")
            return
        if self._bucket(meta.uid or meta.name, reason).delay() > 0:
            self._metrics.events_dropped.inc("rate")
            return
        resource = resource_of(about)
        reference = ObjectReference(
            api_version=resource.api_version,
            kind=resource.kind,
            namespace=meta.namespace,
            name=meta.name,
            uid=meta.uid,
            resource_version=meta.resource_version,
        )
        namespace = meta.namespace or DEFAULT_NAMESPACE
        pending = _Pending(reference, namespace, component, type_, reason, message, 1, now, now, bool(once))
        self._pending[name] = pending
        if once:
            self._remember(name)
        self._idle.clear()
        self._changed.set()

    def _remember(self, name: str) -> None:
        self._told[name] = None
        if len(self._told) > MAX_REMEMBERED:
            del self._told[next(iter(self._told))]

    async def run(self) -> None:
        """Send what is recorded, one after the other, until cancelled."""
        while True:
            while self._pending:
                name = next(iter(self._pending))
                await self._deliver(name, self._pending.pop(name))
            self._idle.set()
            self._changed.clear()
            await self._changed.wait()

    async def drained(self) -> None:
        """Return once everything recorded was sent or dropped."""
        await self._idle.wait()

    def _bucket(self, about: str, reason: str) -> Bucket:
        bucket = self._buckets.get((about, reason))
        if bucket is None:
            bucket = self._buckets[about, reason] = _SpamFilter(self._clock)
            if len(self._buckets) > MAX_BUCKETS:
                del self._buckets[next(iter(self._buckets))]
        return bucket

    async def _deliver(self, name: str, pending: _Pending) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._send(name, pending)
                return
            except (errors.Invalid, errors.Forbidden) as error:
                self._log.warning("event refused", event_reason=pending.reason, error=error)
                break
            except errors.ApiError as error:
                self._log.debug("event not sent", event_reason=pending.reason, attempt=attempt, error=error)
                await self._clock.sleep(attempt)
        self._told.pop(name, None)
        self._metrics.events_dropped.inc("error")

    async def _send(self, name: str, pending: _Pending) -> None:
        fresh = Event(
            metadata=ObjectMeta(name=name, namespace=pending.namespace),
            involved_object=pending.about,
            type=pending.type,
            reason=pending.reason,
            message=pending.message,
            count=pending.count,
            first_timestamp=times.format(pending.first),
            last_timestamp=times.format(pending.last),
            source=EventSource(component=pending.component, host=self._instance),
            reporting_controller=pending.component,
            reporting_instance=self._instance,
        )
        try:
            await self._client.create(fresh)
        except errors.AlreadyExists:
            if pending.once:
                return  # told before a restart
            present = await self._client.get(Event, name, pending.namespace)
            counted = {"count": present.count + pending.count, "lastTimestamp": fresh.last_timestamp}
            await self._client.patch(fresh, counted)


class _SpamFilter(Bucket):
    """25 events of one reason about one object, then one every five minutes; refused events cost nothing."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, rate=1 / 300, burst=25)

    def delay(self) -> float:
        delay = super().delay()
        if delay > 0:
            self._tokens += 1.0
        return delay

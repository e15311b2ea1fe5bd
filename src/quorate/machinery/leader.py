"""Leader election by a Lease: at most one process works.

Theory of operation. The holder renews every `retry` seconds. Others take the lease once they have *seen* it unchanged for
its whole duration by their own monotonic clock; remote clocks are never compared. The holder counts its `renew` deadline
from the moment it *sent* the last successful renewal, which is not later than the moment others saw it. As
`renew` < `duration`, it stops writing before anybody else may start. `leading` is asked before every write, so a process that
was paused finds out at its first effect; a request already under way is harmless by its locks (rule 3).
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from quorate.api import times, wire
from quorate.api.lease import Lease, LeaseSpec
from quorate.api.meta import ObjectMeta
from quorate.api.value import replace
from quorate.machinery import errors, patches
from quorate.machinery.client import Client
from quorate.machinery.clock import Clock
from quorate.machinery.logs import Logger
from quorate.machinery.machinery_metrics import MachineryMetrics


@dataclass(frozen=True)
class Election:
    """Which lease, who we are, and the times in seconds."""

    name: str
    namespace: str
    identity: str
    """Unique per process, not only per node: a restarted process is another candidate."""
    duration: float = 15.0
    renew: float = 10.0
    retry: float = 2.0

    def __post_init__(self) -> None:
        if not self.retry < self.renew < self.duration:
            raise ValueError("an election needs retry < renew < duration")


class LeadershipLost(Exception):
    """The lease could not be renewed in time, or somebody else holds it."""


class LeaderElector:
    """See the module docstring."""

    def __init__(
        self, election: Election, client: Client, clock: Clock, metrics: MachineryMetrics, log: Logger
    ) -> None:
        self._election = election
        self._client = client
        self._clock = clock
        self._metrics = metrics
        self._log = log.bind(lease=election.name, identity=election.identity)
        self._lease: Lease | None = None
        self._seen_at = 0.0
        """When the lease was last seen to change, by our monotonic clock."""
        self._renewed_at: float | None = None
        """When the last successful renewal was sent."""

    def leading(self) -> bool:
        """Whether this process may write at this moment."""
        return self._renewed_at is not None and self._clock.monotonic() < self._renewed_at + self._election.renew

    async def acquire(self) -> None:
        """Return once the lease is ours."""
        while not await self._attempt():
            await self._clock.sleep(self._election.retry)
        self._metrics.leader.set(1, self._election.name)
        self._log.info("leading")

    async def hold(self) -> None:
        """Renew until that fails for too long; then LeadershipLost."""
        try:
            while True:
                await self._clock.sleep(self._election.retry)
                if not self.leading():
                    raise LeadershipLost(f"the lease was not renewed for {self._election.renew:g} s")
                if not await self._attempt() and self._taken():
                    raise LeadershipLost(f"{self._holder()} holds the lease")
        except LeadershipLost as lost:
            self._renewed_at = None
            self._log.error("leadership lost", why=lost)
            raise
        finally:
            self._metrics.leader.set(0, self._election.name)

    async def release(self) -> None:
        """Give the lease back, so that the next process need not wait; failures only cost that wait."""
        lease, was_leading = self._lease, self.leading()
        self._renewed_at = None
        if lease is None or not was_leading or lease.spec.holder_identity != self._election.identity:
            return
        free = replace(
            lease.spec, holder_identity="", lease_duration_seconds=1, renew_time=times.format_micro(self._clock.now())
        )
        try:
            async with asyncio.timeout(self._election.retry):
                # Read first: a renewal may have been under way when the stop came.
                await self._look()
                if self._lease is None or self._holder() != self._election.identity:
                    return
                await self._write(self._lease, free)
            self._log.info("lease released")
        except (errors.ApiError, TimeoutError) as error:
            self._log.warning("lease not released", error=error)

    def _holder(self) -> str:
        return self._lease.spec.holder_identity if self._lease is not None else ""

    def _taken(self) -> bool:
        return self._holder() not in ("", self._election.identity)

    async def _attempt(self) -> bool:
        """Take or renew the lease; False when that failed or somebody else holds it."""
        sent_at = self._clock.monotonic()
        try:
            async with asyncio.timeout(self._election.renew / 2):
                done = await self._take_or_renew()
        except TimeoutError:
            self._log.warning("no answer about the lease")
            return self._forget()
        except (errors.Conflict, errors.AlreadyExists, errors.NotFound) as error:
            self._log.debug("the lease changed", error=error)
            return self._forget()
        except errors.ApiError as error:
            self._log.warning("the lease could not be written", error=error)
            return self._forget()
        if done:
            self._renewed_at = sent_at
        return done

    def _forget(self) -> bool:
        """The outcome is not known or the lease is another one: read it before the next write (rule 2)."""
        if self._lease is not None:
            self._lease = replace(self._lease, metadata=replace(self._lease.metadata, resource_version=""))
        return False

    async def _take_or_renew(self) -> bool:
        election = self._election
        if not (self._holder() == election.identity and self._lease and self._lease.metadata.resource_version):
            await self._look()
        lease = self._lease
        now = times.format_micro(self._clock.now())
        if lease is None:
            self._saw(await self._client.create(self._fresh(now)))
            return True
        ours = lease.spec.holder_identity == election.identity
        expires = self._seen_at + lease.spec.lease_duration_seconds
        if not ours and lease.spec.holder_identity and self._clock.monotonic() < expires:
            return False
        await self._write(
            lease,
            LeaseSpec(
                holder_identity=election.identity,
                lease_duration_seconds=int(election.duration),
                acquire_time=lease.spec.acquire_time if ours else now,
                renew_time=now,
                lease_transitions=lease.spec.lease_transitions + (0 if ours else 1),
            ),
        )
        return True

    def _fresh(self, now: str) -> Lease:
        election = self._election
        return Lease(
            metadata=ObjectMeta(name=election.name, namespace=election.namespace),
            spec=LeaseSpec(
                holder_identity=election.identity,
                lease_duration_seconds=int(election.duration),
                acquire_time=now,
                renew_time=now,
            ),
        )

    async def _look(self) -> None:
        try:
            self._saw(await self._client.get(Lease, self._election.name, self._election.namespace))
        except errors.NotFound:
            self._lease = None

    def _saw(self, lease: Lease) -> None:
        if self._lease is None or self._lease.spec != lease.spec:
            self._seen_at = self._clock.monotonic()
        self._lease = lease

    async def _write(self, lease: Lease, spec: LeaseSpec) -> None:
        patch = wire.merge_patch(lease, replace(lease, spec=spec))
        self._saw(await self._client.patch(lease, patches.locked(patch, lease.metadata.resource_version)))

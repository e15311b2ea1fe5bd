"""The embedded API server: store, rules and background work behind one object.

`transport()` gives an in-process `Transport`; `serve` offers the same over HTTP on the loopback interface. The server
has no task of its own: background work (garbage collection, ending namespaces, grace periods) is scheduled on the
running loop when a change asks for it, so a virtual loop runs it deterministically and a server at rest costs
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from quorate.local import definitions
from quorate.local.builtin import BUILTIN
from quorate.local.documents import Documents
from quorate.local.garbage import GarbageCollector
from quorate.local.journal import Journal, Key, MemoryJournal
from quorate.local.jsonvalue import Json, JsonObject, as_object, as_text, dig
from quorate.local.kinds import Catalog
from quorate.local.lifecycle import Lifecycle
from quorate.local.ports import Ids, SystemIds, WallClock
from quorate.local.registry import Registry, Target, WriteOptions
from quorate.local.rest import Reply, Request, Rest, refusal
from quorate.local.status import StatusError, internal
from quorate.local.store import Closed, Store
from quorate.local.transport import InProcessTransport
from quorate.local.turns import Turns
from quorate.local.watch import Watch
from quorate.machinery.clock import SystemClock

NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
BACKGROUND_DELAY = 0.05
"""Seconds between a deletion and the background work it causes; as in a cluster, others see the time in between."""


class ApiServer:
    """See the module docstring."""

    def __init__(
        self,
        crds: Sequence[Mapping[str, Json]],
        journal: Journal | None = None,
        clock: WallClock | None = None,
        ids: Ids | None = None,
        *,
        history: int = 4096,
    ) -> None:
        self._journal = journal if journal is not None else MemoryJournal()
        self.store = Store(self._journal, history=history)
        self.catalog = Catalog()
        for kind in (*BUILTIN, definitions.DEFINITION):
            self.catalog.add(kind)
        self.registry = Registry(self.store, self.catalog, clock or _system_clock(), ids or SystemIds())
        for _, stored in self.store.all(definitions.TABLE):
            self._serve_definition(stored.obj)
        self.store.observe(self._on_change)
        self._garbage = GarbageCollector(self.registry)
        self._lifecycle = Lifecycle(self.registry)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._bootstrap(crds)
        self._rest = Rest(self.registry, Documents(self.catalog))

    # Kinds

    def _on_change(self, table: str, key: Key, before: JsonObject | None, after: JsonObject | None) -> None:
        del key
        if table != definitions.TABLE:
            return
        if after is not None:
            self._serve_definition(after)
        elif before is not None:
            self.catalog.remove(as_text(dig(before, "spec", "group")), as_text(dig(before, "spec", "names", "plural")))

    def _serve_definition(self, crd: JsonObject) -> None:
        self.catalog.remove(as_text(dig(crd, "spec", "group")), as_text(dig(crd, "spec", "names", "plural")))
        for kind in definitions.kinds_of(crd):
            self.catalog.add(kind)

    def _bootstrap(self, crds: Sequence[Mapping[str, Json]]) -> None:
        """The namespaces every cluster has, and the given CRDs in their present form."""
        for name in NAMESPACES:
            if self.store.get("namespaces", ("", name)) is None:
                kind = self.catalog.find("", "v1", "namespaces")
                assert kind is not None
                body: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
                self.registry.create(kind, "", body, WriteOptions())
        for crd in crds:
            self._install(dict(crd))

    def _install(self, crd: JsonObject) -> None:
        name = as_text(dig(crd, "metadata", "name"))
        target = Target(definitions.DEFINITION, "", name)
        stored = self.store.get(definitions.TABLE, ("", name))
        if stored is None:
            self.registry.create(definitions.DEFINITION, "", crd, WriteOptions())
            return
        # An unchanged definition is not written again: the update of an equal object is no change.
        metadata = {**as_object(stored.obj.get("metadata")), **_described(crd)}
        self.registry.replace(target, {**stored.obj, "metadata": metadata, "spec": crd.get("spec")}, WriteOptions())

    # Requests

    def handle(self, request: Request) -> Reply | Watch:
        """One request, synchronously; the reply must be held back until its version is durable (`settle`)."""
        if self.store.closed is not None:
            return refusal(_stopped(self.store.closed))
        try:
            reply = self._rest.handle(request)
        except Closed as closed:
            return refusal(_stopped(str(closed)))
        except Exception as error:
            return refusal(internal(f"{type(error).__name__}: {error}"))
        self._schedule()
        return reply

    async def settle(self, reply: Reply) -> Reply:
        """The reply once it may be shown."""
        try:
            await self.store.wait_durable(reply.version)
        except Closed as closed:
            return refusal(_stopped(str(closed)))
        return reply

    def transport(self, turns: Turns | None = None) -> InProcessTransport:
        """A way to reach this server without a socket; with `turns` it leaves room for others on the same loop."""
        return InProcessTransport(self, turns)

    # Background work

    def _schedule(self) -> None:
        if self._garbage.pending or self._lifecycle.due:
            self._wake_in(BACKGROUND_DELAY)

    def _wake_in(self, seconds: float) -> None:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            # Without a loop (a synchronous test) the caller runs background work itself.
            return
        when = loop.time() + seconds
        if self._timer is not None:
            if self._timer_at <= when:
                return
            self._timer.cancel()
        self._timer_at = when
        self._timer = loop.call_at(when, self.run_background)

    def run_background(self) -> None:
        """Do all background work that is due; called by the scheduled timer."""
        self._timer = None
        if self.store.closed is not None:
            return
        wait: float | None = None
        while self._garbage.pending or self._lifecycle.due:
            self._garbage.collect()
            wait = self._lifecycle.step()
        if wait is not None:
            self._lifecycle.due = True
            self._wake_in(max(wait, BACKGROUND_DELAY))

    # The end

    def crash(self, why: str = "the server crashed") -> None:
        """Stop at once, as a killed process does: answers in flight are lost, watches break."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.store.stop(why)

    async def close(self) -> None:
        """Make everything durable and stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await self._journal.close()
        self.store.stop("the server is shutting down")


def _described(crd: JsonObject) -> JsonObject:
    metadata = as_object(crd.get("metadata"))
    return {key: metadata[key] for key in ("labels", "annotations") if key in metadata}


def _stopped(why: str) -> StatusError:
    return StatusError(503, "ServiceUnavailable", f"the server is not available: {why}", retry_after=1)


def _system_clock() -> WallClock:
    return SystemClock()

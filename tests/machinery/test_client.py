"""The typed client: against the embedded server, and against scripted bytes where the server is too well-behaved."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.meta import ObjectMeta
from quorate.api.node import Node
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.machinery import errors, patches
from quorate.machinery.client import Bookmark, Changed, Client, UndecodableChange, WatchEvent
from quorate.machinery.clock import LoopClock
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry
from quorate.machinery.transport import Response
from quorate.machinery.virtual_loop import run_virtual
from tests.machinery.toy import new_volume, with_condition
from tests.machinery.world import World, virtually


class Scripted:
    """Answers every request with fixed bytes."""

    def __init__(
        self, chunks: list[bytes] | None = None, response: Response | None = None, silent: bool = False
    ) -> None:
        self.chunks = chunks or []
        self.response = response
        self.silent = silent
        self.closed = False

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        if self.silent or self.response is None:
            await asyncio.sleep(1e6)
        assert self.response is not None
        return self.response

    def stream(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream()

    @asynccontextmanager
    async def _stream(self) -> AsyncGenerator[AsyncIterator[bytes]]:
        try:
            yield self._pieces()
        finally:
            self.closed = True

    async def _pieces(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk


def client_of(transport: Scripted) -> Client:
    return Client(transport, LoopClock(), MachineryMetrics(Registry()), timeout=5)


def events_of(chunks: list[bytes]) -> list[WatchEvent[Node]]:
    async def main() -> list[WatchEvent[Node]]:
        found: list[WatchEvent[Node]] = []
        async with aclosing(client_of(Scripted(chunks)).watch(Node, resource_version="1")) as events:
            async for event in events:
                found.append(event)  # noqa: PERF401 (an async comprehension would not close early)
        return found

    return run_virtual(main)


LINES = (
    b'{"type":"ADDED","object":{"kind":"Node","metadata":{"name":"a","resourceVersion":"5"}}}\n'
    b'{"type":"BOOKMARK","object":{"kind":"Node","metadata":{"resourceVersion":"9"}}}\n'
    b"\n"
    b'{"type":"MODIFIED","object":{"kind":"Node","metadata":{"name":7,"resourceVersion":"10"}}}\n'
    b'{"type":"DELETED","object":{"kind":"Node","metadata":{"name":"a","resourceVersion":"11"}}}\n'
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, len(LINES)), max_size=12))
def test_watch_lines_are_found_wherever_the_pieces_break(cuts: list[int]) -> None:
    borders = sorted({0, len(LINES), *cuts})
    chunks = [LINES[start:end] for start, end in pairwise(borders)]
    events = events_of(chunks)
    assert [type(event) for event in events] == [Changed, Bookmark, UndecodableChange, Changed]
    assert isinstance(events[0], Changed)
    assert events[0].obj.metadata.name == "a"
    assert events[1] == Bookmark("9")
    assert isinstance(events[2], UndecodableChange)
    assert events[2].resource_version == "10"


def test_a_line_that_was_cut_off_is_no_event() -> None:
    events = events_of([LINES[:40], LINES[40 : len(LINES) - 20]])
    assert len(events) == 3


def test_an_error_event_is_the_typed_error() -> None:
    line = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n'
    with pytest.raises(errors.Expired):
        events_of([line])


def test_leaving_a_watch_early_ends_the_request() -> None:
    async def main() -> bool:
        transport = Scripted([LINES])
        async with aclosing(client_of(transport).watch(Node, resource_version="1")) as events:
            await anext(events)
        return transport.closed

    assert run_virtual(main)


def test_no_answer_in_time_is_a_timeout_with_unknown_outcome() -> None:
    async def main() -> None:
        await client_of(Scripted(silent=True)).create(Node(metadata=ObjectMeta(name="a")))

    with pytest.raises(errors.Timeout) as caught:
        run_virtual(main)
    assert caught.value.outcome_unknown


def test_lists_are_read_in_pages_at_one_version() -> None:
    async def main(world: World) -> None:
        for number in range(7):
            await world.client.create(new_volume(f"v{number}"))
        before = len(world.history)
        listing = await world.client.list(ReplicatedVolume, page_size=3)
        assert [volume.metadata.name for volume in listing.items] == [f"v{number}" for number in range(7)]
        assert len(world.history) - before == 3
        assert int(listing.resource_version) >= int(listing.items[-1].metadata.resource_version)

    virtually(main)


def test_one_undecodable_item_does_not_spoil_the_list() -> None:
    body = (
        b'{"kind":"NodeList","metadata":{"resourceVersion":"3"},"items":['
        b'{"metadata":{"name":"good","resourceVersion":"1"}},{"metadata":{"name":"bad","resourceVersion":2}}]}'
    )

    async def main() -> None:
        listing = await client_of(Scripted(response=Response(200, body))).list(Node)
        assert [node.metadata.name for node in listing.items] == ["good"]
        assert len(listing.undecodable) == 1

    run_virtual(main)


def test_halves_are_written_separately_and_locked() -> None:
    async def main(world: World) -> None:
        first = await world.client.create(new_volume("v"))
        after = with_condition(first, "Formed", True, world.clock.now())
        status = patches.half_patch(first, after, patches.Half.STATUS)
        second = await world.client.patch(first, patches.locked(status, "", ""), subresource="status")
        assert second.status.conditions[0].type == "Formed"
        assert second.metadata.generation == first.metadata.generation
        stale = patches.locked(status, first.metadata.resource_version)
        with pytest.raises(errors.Conflict):
            await world.client.patch(first, stale, subresource="status")

    virtually(main)


def test_delete_honours_its_preconditions() -> None:
    async def main(world: World) -> None:
        volume = await world.client.create(new_volume("v"))
        with pytest.raises(errors.Conflict):
            await world.client.delete(volume, uid="another")
        with pytest.raises(errors.Conflict):
            await world.client.delete(volume, resource_version="1")
        meta = volume.metadata
        gone = await world.client.delete(volume, uid=meta.uid, resource_version=meta.resource_version)
        assert gone is None
        with pytest.raises(errors.NotFound):
            await world.client.delete(volume)

    virtually(main)


def test_dry_run_changes_nothing() -> None:
    async def main(world: World) -> None:
        created = await world.client.create(new_volume("v"), dry_run=True)
        assert created.metadata.name == "v"
        with pytest.raises(errors.NotFound):
            await world.client.get(ReplicatedVolume, "v")
        real = await world.client.create(new_volume("v"))
        await world.client.patch(real, {"metadata": {"labels": {"a": "b"}}}, dry_run=True)
        await world.client.delete(real, dry_run=True)
        assert await world.client.get(ReplicatedVolume, "v") == real

    virtually(main)

"""Watches: resuming, selections, bookmarks, expiry, and that they tell exactly what happened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.local.journal import SimulatedJournal
from quorate.local.jsonvalue import JsonObject, as_object, as_text, decode, dig
from quorate.local.rest import Request
from quorate.local.watch import Watch
from quorate.machinery import errors
from quorate.machinery.virtual_loop import run_virtual
from tests.local.builders import WIDGETS, Api, crd, make_api, widget, with_spec

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def run(main: Callable[[], Coroutine[object, object, None]]) -> None:
    run_virtual(main)


async def events(api: Api, count: int, accept: str = "", path: str = WIDGETS, **query: str) -> list[JsonObject]:
    """The first `count` events of a watch, fewer when it ends."""
    found: list[JsonObject] = []
    reply = api.server.handle(Request("GET", path, {"watch": "true", **query}, {"accept": accept}))
    assert isinstance(reply, Watch), reply
    async with aclosing(reply.lines()) as lines:
        async for line in split(lines):
            found.append(line)
            if len(found) == count:
                break
    return found


async def split(chunks: AsyncGenerator[bytes, None]) -> AsyncGenerator[JsonObject, None]:
    async for chunk in chunks:
        assert chunk.endswith(b"\n"), "chunks are complete lines"
        for line in chunk.splitlines():
            yield as_object(decode(line))


def brief(found: list[JsonObject]) -> list[tuple[str, str]]:
    return [(as_text(event["type"]), as_text(dig(event, "object", "metadata", "name"))) for event in found]


def test_a_watch_from_a_version_gives_what_came_after() -> None:
    async def main() -> None:
        api = make_api()
        api.post(WIDGETS, widget("a"))
        version = api.get(WIDGETS).version
        api.post(WIDGETS, widget("b"))
        api.merge(f"{WIDGETS}/a", {"spec": {"size": 2}})
        api.delete(f"{WIDGETS}/b")
        found = await events(api, 3, resourceVersion=version)
        assert brief(found) == [("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
        versions = [int(as_text(dig(event, "object", "metadata", "resourceVersion"))) for event in found]
        assert versions == sorted(set(versions)), "a deletion has its own version"

    run(main)


def test_a_watch_without_a_version_begins_with_what_is_there() -> None:
    async def main() -> None:
        api = make_api()
        api.post(WIDGETS, widget("a"))
        task = asyncio.create_task(events(api, 2))
        await asyncio.sleep(5)
        api.post(WIDGETS, widget("b"))
        assert brief(await task) == [("ADDED", "a"), ("ADDED", "b")]

    run(main)


def test_initial_events_end_with_a_marked_bookmark() -> None:
    async def main() -> None:
        api = make_api()
        api.post(WIDGETS, widget("a"))
        found = await events(
            api, 2, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true"
        )
        assert [event["type"] for event in found] == ["ADDED", "BOOKMARK"]
        assert dig(found[1], "object", "metadata", "annotations") == {"k8s.io/initial-events-end": "true"}
        assert dig(found[1], "object", "metadata", "resourceVersion") == api.get(WIDGETS).version

    run(main)


def test_objects_enter_and_leave_a_selection() -> None:
    async def main() -> None:
        api = make_api()
        version = api.get(WIDGETS).version
        api.post(WIDGETS, widget("a", labels={"on": "no"}))
        api.merge(f"{WIDGETS}/a", {"metadata": {"labels": {"on": "yes"}}})
        api.merge(f"{WIDGETS}/a", {"spec": {"size": 2}})
        api.merge(f"{WIDGETS}/a", {"metadata": {"labels": {"on": "no"}}})
        api.merge(f"{WIDGETS}/a", {"metadata": {"labels": {"on": "yes"}}})
        last = api.delete(f"{WIDGETS}/a")
        assert last.status == 200
        found = await events(api, 5, resourceVersion=version, labelSelector="on=yes")
        assert [event["type"] for event in found] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]
        assert dig(found[2], "object", "metadata", "labels") == {"on": "yes"}, "the last selected state"

    run(main)


def test_a_field_selector_bounds_a_watch() -> None:
    async def main() -> None:
        api = make_api()
        version = api.get(WIDGETS).version
        api.post(WIDGETS, with_spec("a", node="n1"))
        api.post(WIDGETS, with_spec("b", node="n2"))
        assert brief(await events(api, 1, resourceVersion=version, fieldSelector="spec.node=n2")) == [("ADDED", "b")]
        assert brief(await events(api, 1, resourceVersion=version, path=f"{WIDGETS}/b")) == [("ADDED", "b")]

    run(main)


def test_bookmarks_tell_the_newest_version_of_everything() -> None:
    async def main() -> None:
        api = make_api()
        task = asyncio.create_task(events(api, 1, resourceVersion=api.get(WIDGETS).version, allowWatchBookmarks="true"))
        await asyncio.sleep(1)
        api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}})
        (bookmark,) = await task
        assert bookmark["type"] == "BOOKMARK"
        assert dig(bookmark, "object", "kind") == "Widget"
        assert dig(bookmark, "object", "metadata", "resourceVersion") == api.get(WIDGETS).version

    run(main)


def test_no_bookmarks_unless_asked_for_and_the_timeout_ends_the_watch() -> None:
    async def main() -> None:
        api = make_api()
        loop = asyncio.get_running_loop()
        started = loop.time()
        assert await events(api, 9, resourceVersion=api.get(WIDGETS).version, timeoutSeconds="300") == []
        assert 300 <= loop.time() - started < 301

    run(main)


@pytest.mark.parametrize("version", ["1", "9999"], ids=["compacted", "from another life of the server"])
def test_a_version_outside_the_history_is_expired(version: str) -> None:
    async def main() -> None:
        api = make_api()
        api.post(WIDGETS, widget("a"))
        api.server.store.compact(api.server.store.version)
        answer = api.get(WIDGETS, watch="true", resourceVersion=version)
        assert (answer.status, answer.reason) == (410, "Expired")

    run(main)


def test_a_watcher_left_behind_by_the_history_is_told_to_start_over() -> None:
    async def main() -> None:
        api = make_api(crd(), history=8)
        reply = api.server.handle(
            Request("GET", WIDGETS, {"watch": "true", "resourceVersion": api.get(WIDGETS).version})
        )
        assert isinstance(reply, Watch)
        for number in range(40):
            api.post(WIDGETS, widget(f"w{number}"))
        async with aclosing(reply.lines()) as lines:
            found = [event async for event in split(lines)]
        assert [(event["type"], dig(event, "object", "code"), dig(event, "object", "reason")) for event in found] == [
            ("ERROR", 410, "Expired")
        ]

    run(main)


def test_an_idle_watcher_survives_compaction() -> None:
    async def main() -> None:
        api = make_api()
        task = asyncio.create_task(events(api, 1, resourceVersion=api.get(WIDGETS).version))
        await asyncio.sleep(1)
        for number in range(5):
            api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}})
        await asyncio.sleep(61)
        api.server.store.compact(api.server.store.version)
        await asyncio.sleep(1)
        api.post(WIDGETS, widget("a"))
        assert brief(await task) == [("ADDED", "a")]

    run(main)


def test_a_table_watch_sends_rows() -> None:
    async def main() -> None:
        api = make_api()
        api.post(WIDGETS, widget("a", size=7))
        (event,) = await events(api, 1, TABLE)
        assert dig(event, "object", "kind") == "Table"
        rows = as_object(event["object"])["rows"]
        assert isinstance(rows, list)
        assert as_object(rows[0])["cells"] == ["a", 7, None, "0s", "red"]

    run(main)


def test_watchers_see_nothing_that_is_not_durable() -> None:
    async def main() -> None:
        journal = SimulatedJournal(fsync_seconds=10)
        api = make_api(crd(), journal=journal)
        await api.server.store.wait_durable(api.server.store.version)
        loop = asyncio.get_running_loop()
        task = asyncio.create_task(events(api, 1, resourceVersion=api.get(WIDGETS).version))
        await asyncio.sleep(1)
        written = loop.time()
        api.post(WIDGETS, widget("a"))
        await task
        assert loop.time() - written >= 10

    run(main)


def test_a_crash_breaks_the_stream_with_an_error() -> None:
    async def main() -> None:
        api = make_api()
        transport = api.server.transport()
        query = {"watch": "true", "resourceVersion": api.get(WIDGETS).version}

        async def read() -> None:
            async with transport.stream("GET", WIDGETS, query=query, headers={}) as chunks:
                async for _ in chunks:
                    pass

        task = asyncio.create_task(read())
        await asyncio.sleep(1)
        api.server.crash()
        with pytest.raises(errors.Unavailable):
            await task
        with pytest.raises(errors.Unavailable):
            await transport.request("GET", WIDGETS, query={}, headers={}, body=b"")

    run(main)


def test_a_refused_stream_raises_the_typed_error() -> None:
    async def main() -> None:
        api = make_api()
        api.server.store.compact(api.server.store.version)
        with pytest.raises(errors.Expired):
            async with api.server.transport().stream(
                "GET", WIDGETS, query={"watch": "true", "resourceVersion": "1"}, headers={}
            ):
                pass

    run(main)


STEPS = st.lists(
    st.tuples(st.sampled_from(["post", "merge", "delete", "label"]), st.sampled_from("abc"), st.integers(1, 50)),
    max_size=25,
)


@given(STEPS, st.sampled_from(["", "on=yes"]))
def test_list_and_watch_together_equal_a_later_list(steps: list[tuple[str, str, int]], selector: str) -> None:
    """The invariant every cache rests on."""

    async def main() -> None:
        api = make_api()
        start = api.get(WIDGETS, labelSelector=selector)
        mirror = {as_text(dig(item, "metadata", "name")): item for item in start.items}
        task = asyncio.create_task(
            events(api, 10_000, resourceVersion=start.version, labelSelector=selector, timeoutSeconds="5")
        )
        for action, name, number in steps:
            if action == "post":
                api.post(WIDGETS, widget(name, number, labels={"on": "yes" if number % 2 else "no"}))
            elif action == "merge":
                api.merge(f"{WIDGETS}/{name}", {"spec": {"size": number}})
            elif action == "label":
                api.merge(f"{WIDGETS}/{name}", {"metadata": {"labels": {"on": "yes" if number % 2 else "no"}}})
            else:
                api.delete(f"{WIDGETS}/{name}")
            if number % 3 == 0:
                await asyncio.sleep(0.01)
        for event in await task:
            obj = as_object(event["object"])
            name = as_text(dig(obj, "metadata", "name"))
            if event["type"] == "DELETED":
                assert name in mirror
                del mirror[name]
            else:
                assert (name in mirror) == (event["type"] == "MODIFIED")
                mirror[name] = obj
        assert [mirror[name] for name in sorted(mirror)] == api.get(WIDGETS, labelSelector=selector).items

    run(main)

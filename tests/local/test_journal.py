"""Journals: what was acknowledged survives, what was not durable was never shown."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.local.directory_lock import DirectoryInUse
from quorate.local.journal import Entry, JournalError, SimulatedJournal
from quorate.local.jsonvalue import as_object, as_text, decode, dig, encode
from quorate.local.sqlite_journal import SqliteJournal
from quorate.machinery import errors
from quorate.machinery.virtual_loop import run_virtual
from tests.local.builders import WIDGETS, crd, make_api, widget

JSON = {"content-type": "application/json"}


@given(st.lists(st.floats(0, 0.01), min_size=1, max_size=12), st.floats(0, 0.05))
def test_a_crash_loses_only_what_was_not_acknowledged(gaps: list[float], crash_after: float) -> None:
    async def main() -> None:
        journal = SimulatedJournal(fsync_seconds=0.004)
        api = make_api(crd(), journal=journal)
        await api.server.store.wait_durable(api.server.store.version)
        transport = api.server.transport()
        acknowledged: list[str] = []

        async def write(name: str) -> None:
            body = encode(widget(name))
            try:
                answer = await transport.request("POST", WIDGETS, query={}, headers=JSON, body=body)
            except errors.Unavailable:
                return
            assert answer.status == 201
            acknowledged.append(name)

        async with asyncio.TaskGroup() as tasks:
            for number, gap in enumerate(gaps):
                tasks.create_task(write(f"w{number}"))
                await asyncio.sleep(gap)
            await asyncio.sleep(crash_after)
            journal.crash()
            api.server.crash()
        again = make_api(crd(), journal=journal)
        survived = again.get(WIDGETS).names
        assert set(acknowledged) <= set(survived)
        await again.server.store.wait_durable(again.server.store.version)

    run_virtual(main)


def test_versions_go_on_after_a_restart() -> None:
    async def main() -> None:
        journal = SimulatedJournal()
        api = make_api(crd(), journal=journal)
        created = api.post(WIDGETS, widget("a"))
        await api.server.close()
        again = make_api(crd(), journal=journal)
        assert again.get(f"{WIDGETS}/a").body == created.body
        assert int(again.post(WIDGETS, widget("b")).version) > int(created.version)
        assert again.get(WIDGETS, watch="true", resourceVersion="1").status == 410, "history does not survive"

    run_virtual(main)


def test_a_failing_disk_stops_the_server() -> None:
    async def main() -> None:
        journal = SimulatedJournal()
        api = make_api(crd(), journal=journal)
        await api.server.store.wait_durable(api.server.store.version)
        transport = api.server.transport()
        journal.fail()
        with pytest.raises(errors.Unavailable, match="storage failed"):
            await transport.request("POST", WIDGETS, query={}, headers=JSON, body=encode(widget("a")))
        assert api.get(WIDGETS).status == 503

    run_virtual(main)


async def test_sqlite_keeps_objects_and_forgets_deleted_ones(tmp_path: Path) -> None:
    api = make_api(crd(), journal=SqliteJournal(tmp_path))
    kept = api.post(WIDGETS, widget("a"))
    api.post(WIDGETS, widget("b"))
    api.delete(f"{WIDGETS}/b")
    changed = api.merge(f"{WIDGETS}/a", {"spec": {"size": 5}})
    await api.server.close()
    again = make_api(crd(), journal=SqliteJournal(tmp_path))
    assert again.get(WIDGETS).names == ["a"]
    assert again.get(f"{WIDGETS}/a").body == changed.body
    assert again.get(f"{WIDGETS}/a").metadata["uid"] == kept.metadata["uid"]
    assert int(again.get(WIDGETS).version) >= int(changed.version)
    await again.server.close()


async def test_a_restart_with_unchanged_definitions_writes_nothing(tmp_path: Path) -> None:
    api = make_api(crd(), journal=SqliteJournal(tmp_path))
    before = api.server.store.version
    await api.server.close()
    again = make_api(crd(), journal=SqliteJournal(tmp_path))
    assert again.server.store.version == before
    await again.server.close()


async def test_sqlite_acknowledges_after_the_commit(tmp_path: Path) -> None:
    api = make_api(crd(), journal=SqliteJournal(tmp_path))
    transport = api.server.transport()
    answers = await asyncio.gather(
        *(transport.request("POST", WIDGETS, query={}, headers=JSON, body=encode(widget(f"w{n}"))) for n in range(200))
    )
    version = max(
        int(as_text(dig(as_object(decode(answer.body)), "metadata", "resourceVersion"))) for answer in answers
    )
    assert api.server.store.durable >= version
    await api.server.close()


def test_one_server_per_directory(tmp_path: Path) -> None:
    first = SqliteJournal(tmp_path)
    with pytest.raises(DirectoryInUse, match="another server uses the directory"):
        SqliteJournal(tmp_path)
    asyncio.run(first.close())
    asyncio.run(SqliteJournal(tmp_path).close())


def test_a_damaged_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "objects.sqlite").write_bytes(b"this is no database, it only looks like a file" * 100)
    with pytest.raises(JournalError, match="cannot read"):
        SqliteJournal(tmp_path).load()


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), max_size=20))
def test_a_journal_gives_back_the_last_state_of_every_object(changes: list[tuple[str, bool]]) -> None:
    async def main() -> None:
        journal = SimulatedJournal()
        expected: dict[str, int] = {}
        journal.open(lambda version: None, lambda error: None)
        for version, (name, alive) in enumerate(changes, 2):
            journal.append(Entry(version, "t", ("", name), {"v": version} if alive else None))
            if alive:
                expected[name] = version
            else:
                expected.pop(name, None)
        await journal.close()
        recovered = journal.load()
        assert {entry.key[1]: entry.version for entry in recovered.entries} == expected
        assert recovered.version == (len(changes) + 1 if changes else 0)

    run_virtual(main)

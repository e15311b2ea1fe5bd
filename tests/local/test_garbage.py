"""Owner references: background, foreground and orphan deletion."""

from __future__ import annotations

import pytest

from quorate.local.journal import SimulatedJournal
from quorate.local.jsonvalue import Json, JsonObject
from quorate.machinery.virtual_loop import run_virtual
from tests.local.builders import WIDGETS, Answer, Api, crd, make_api, owner_of, widget


@pytest.fixture
def api() -> Api:
    return make_api()


def child_of(api: Api, name: str, *owners: JsonObject, finalizers: list[Json] | None = None) -> Answer:
    answer = api.post(WIDGETS, widget(name, ownerReferences=[*owners], finalizers=finalizers or []))
    assert answer.status == 201
    return answer


def names(api: Api) -> list[str]:
    return api.get(WIDGETS).names


def test_dependents_follow_their_owner_in_the_background(api: Api) -> None:
    root = api.post(WIDGETS, widget("root"))
    child = child_of(api, "child", owner_of(root))
    child_of(api, "grandchild", owner_of(child))
    api.post(WIDGETS, widget("stranger"))
    api.delete(f"{WIDGETS}/root", {"propagationPolicy": "Background"})
    assert names(api) == ["child", "grandchild", "stranger"], "background means later"
    api.settle()
    assert names(api) == ["stranger"]


def test_a_dependent_with_another_owner_stays_and_loses_the_reference(api: Api) -> None:
    first, second = api.post(WIDGETS, widget("first")), api.post(WIDGETS, widget("second"))
    child_of(api, "child", owner_of(first), owner_of(second))
    api.delete(f"{WIDGETS}/first")
    api.settle()
    assert api.get(f"{WIDGETS}/child").metadata["ownerReferences"] == [owner_of(second)]


def test_a_finalizer_holds_a_dependent(api: Api) -> None:
    root = api.post(WIDGETS, widget("root"))
    child_of(api, "child", owner_of(root), finalizers=["a/b"])
    api.delete(f"{WIDGETS}/root")
    api.settle()
    assert "deletionTimestamp" in api.get(f"{WIDGETS}/child").metadata


def test_orphans_stay_without_the_reference(api: Api) -> None:
    root = api.post(WIDGETS, widget("root"))
    child_of(api, "child", owner_of(root))
    held = api.delete(f"{WIDGETS}/root", {"propagationPolicy": "Orphan"})
    assert held.metadata["finalizers"] == ["orphan"]
    api.settle()
    assert names(api) == ["child"]
    assert "ownerReferences" not in api.get(f"{WIDGETS}/child").metadata


def test_foreground_deletion_waits_for_blocking_dependents(api: Api) -> None:
    root = api.post(WIDGETS, widget("root"))
    child_of(api, "child", owner_of(root, blockOwnerDeletion=True), finalizers=["a/b"])
    child_of(api, "other", owner_of(root))
    answer = api.delete(f"{WIDGETS}/root", {"propagationPolicy": "Foreground"})
    assert answer.metadata["finalizers"] == ["foregroundDeletion"]
    api.settle()
    assert names(api) == ["child", "root"]
    assert "deletionTimestamp" in api.get(f"{WIDGETS}/child").metadata
    api.merge(f"{WIDGETS}/child", {"metadata": {"finalizers": None}})
    api.settle()
    assert names(api) == []


def test_foreground_deletion_does_not_wait_for_others(api: Api) -> None:
    root = api.post(WIDGETS, widget("root"))
    child_of(api, "child", owner_of(root), finalizers=["a/b"])
    api.delete(f"{WIDGETS}/root", {"propagationPolicy": "Foreground"})
    api.settle()
    assert names(api) == ["child"]


def test_an_owner_of_the_same_name_but_another_uid_is_gone(api: Api) -> None:
    root = api.post(WIDGETS, widget("root"))
    child_of(api, "child", owner_of(root, uid="00000000-0000-0000-0000-000000000000"))
    api.settle()
    assert names(api) == ["root"]


def test_an_owner_of_an_unknown_kind_keeps_its_dependents(api: Api) -> None:
    """Its absence cannot be proven."""
    root = api.post(WIDGETS, widget("root"))
    child_of(api, "child", owner_of(root, kind="Gizmo", apiVersion="other.dev/v1", uid="x"))
    api.settle()
    assert names(api) == ["child", "root"]


def test_an_adopted_orphan_is_collected_with_its_new_owner(api: Api) -> None:
    api.post(WIDGETS, widget("child"))
    root = api.post(WIDGETS, widget("root"))
    api.merge(f"{WIDGETS}/child", {"metadata": {"ownerReferences": [owner_of(root)]}})
    api.delete(f"{WIDGETS}/root")
    api.settle()
    assert names(api) == []


def test_a_restart_in_between_does_not_lose_dependents() -> None:
    async def main() -> list[str]:
        journal = SimulatedJournal()
        api = make_api(crd(), journal=journal)
        root = api.post(WIDGETS, widget("root"))
        child_of(api, "child", owner_of(root))
        api.delete(f"{WIDGETS}/root")
        await api.server.store.wait_durable(api.server.store.version)
        api.server.crash()
        journal.crash()
        again = make_api(crd(), journal=journal)
        assert names(again) == ["child"]
        again.settle()
        return names(again)

    assert run_virtual(main) == []


def test_the_collector_runs_by_itself_on_a_loop() -> None:
    async def main() -> None:
        import asyncio

        api = make_api()
        root = api.post(WIDGETS, widget("root"))
        child_of(api, "child", owner_of(root))
        api.delete(f"{WIDGETS}/root")
        await asyncio.sleep(1)
        assert names(api) == []

    run_virtual(main)

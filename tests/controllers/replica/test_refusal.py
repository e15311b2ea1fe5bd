"""A logical volume that the API server refuses: the reasons are published, and the same thing is not tried over and over."""

from __future__ import annotations

from quorate.api.crd import all_crds
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.value import replace
from quorate.controllers.replica.decide import decide
from quorate.controllers.replica.publish import HeldSince
from quorate.controllers.replica.refusal import WouldBeRefused, dry_run
from quorate.local.api_server import ApiServer
from quorate.local.ports import SeededIds
from quorate.machinery.client import Client
from quorate.machinery.clock import SystemClock
from quorate.machinery.effects import Create, Decision, Half, Patch
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry
from tests.controllers.replica.builders import (
    GIB,
    NOW,
    World,
    agent_pod,
    condition,
    created,
    find,
    joined,
    logical_volume,
    node,
    patches,
    pool,
    replica,
    status_after,
    volume,
    with_status,
)

REASONS = "LVMLogicalVolume x is refused: spec.size: too large"


def new() -> World:
    return World(replica(), volume(), pool=pool(), pod=agent_pod(), node=node())


def grown() -> World:
    world = joined()
    assert world.volume is not None
    return world.but(volume=replace(world.volume, spec=replace(world.volume.spec, size=Quantity.of(2 * GIB))))


def answered(world: World, *, held: float, refused: str) -> tuple[Decision, list[WouldBeRefused]]:
    """The decision when a report has been held back for `held` seconds and the server would refuse with `refused`."""
    answers: dict[object, object] = {}
    asked: list[WouldBeRefused] = []
    for _ in range(5):
        decision = decide(world.snapshot(), answers, NOW)
        if not decision.ask:
            return decision, asked
        for request in decision.ask:
            if isinstance(request, WouldBeRefused):
                asked.append(request)
                answers[request] = refused
            else:
                assert isinstance(request, HeldSince)
                answers[request] = NOW - held
    raise AssertionError("too many rounds")


def test_the_first_attempt_asks_nobody() -> None:
    decision, asked = answered(new(), held=0.0, refused=REASONS)
    assert asked == []
    assert len(created(decision)) == 1


def test_a_refused_creation_is_published_with_the_reasons_and_not_repeated() -> None:
    world = new()
    decision, asked = answered(world, held=1.0, refused=REASONS)
    assert [question.before for question in asked] == [None]
    assert created(decision) == []
    status = status_after(decision, world)
    assert find(status, "BackingVolumeReady") == ("False", "ProvisioningFailed")
    assert status.phase == "Provisioning"
    assert REASONS in status.message
    assert decision.wake_after == 300.0


def test_a_refused_resize_is_published_with_the_reasons_and_not_repeated() -> None:
    world = grown()
    decision, asked = answered(world, held=1.0, refused=REASONS)
    assert len(asked) == 1
    assert patches(decision, LVMLogicalVolume, Half.MAIN) == []
    assert find(status_after(decision, world), "BackingVolumeReady") == ("False", "ResizeFailed")
    assert decision.wake_after == 300.0


def test_what_failed_before_is_asked_about_first() -> None:
    failed = condition("BackingVolumeReady", "False", "ProvisioningFailed", REASONS)
    world = new().but(replica=with_status(replica(), conditions=(failed,)))
    _, asked = answered(world, held=0.0, refused=REASONS)
    assert len(asked) == 1


def test_once_it_is_not_refused_any_more_it_is_made() -> None:
    failed = condition("BackingVolumeReady", "False", "ProvisioningFailed", REASONS)
    world = new().but(replica=with_status(replica(), conditions=(failed,)))
    decision, _ = answered(world, held=0.0, refused="")
    assert [type(effect) for effect in decision.effects if isinstance(effect, Create | Patch)][:1] == [Create]


async def test_dry_run_against_the_api_server() -> None:
    clock = SystemClock()
    server = ApiServer(all_crds(), clock=clock, ids=SeededIds(1))
    client = Client(server.transport(), clock, MachineryMetrics(Registry()))
    ask = dry_run(client)
    owner = replica()
    good = replace(logical_volume(owner), metadata=ObjectMeta(name="good"))
    bad = replace(good, spec=replace(good.spec, actual_lv_name_on_the_node="Not Allowed"))
    assert await ask(WouldBeRefused(None, good)) == ""
    assert "actualLVNameOnTheNode" in await ask(WouldBeRefused(None, bad))
    stored = await client.create(good)
    moved = replace(stored, spec=replace(stored.spec, lvm_volume_group_name="elsewhere"))
    assert "lvmVolumeGroupName" in await ask(WouldBeRefused(stored, moved))
    assert (await client.get(LVMLogicalVolume, "good")).spec.lvm_volume_group_name == "vg"
    assert await dry_run(None)(WouldBeRefused(None, bad)) == ""

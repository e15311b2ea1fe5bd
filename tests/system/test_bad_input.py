"""Bad input: a condition that names the cause and the way out, no crash loop, no half-made leftovers."""

from __future__ import annotations

import pytest

from quorate.api import conditions
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_volume import ReplicatedVolume, VolumeConfiguration
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.local.shape import GIB, Shape
from quorate.machinery import errors
from quorate.verification.system.system import System, SystemOptions, run_system
from tests.system import stories


async def reason_of(
    system: System, kind: type[ReplicatedVolume] | type[ReplicatedStorageClass], name: str, type_: str
) -> tuple[str, str]:
    found = await system.get(kind, name)
    value = conditions.get(found.status.conditions, type_)
    assert value is not None
    return value.reason, value.message


async def settled(system: System) -> None:
    """Nothing spins: after a while there are no writes any more."""
    await system.clock.sleep(30)
    await system.quiet(120)


def test_unknown_class() -> None:
    async def story(system: System) -> None:
        await system.create_volume(class_name="nowhere")
        await system.clock.sleep(10)
        reason, message = await reason_of(system, ReplicatedVolume, "vol", "ConfigurationReady")
        assert reason == "WaitingForStorageClass"
        assert "nowhere does not exist; create it or name another class" in message
        assert await system.list(ReplicatedVolumeReplica) == ()
        await settled(system)
        await system.delete(ReplicatedVolume, "vol")
        await system.gone(ReplicatedVolume, "vol")

    run_system(story)


def test_unknown_pool() -> None:
    async def story(system: System) -> None:
        config = VolumeConfiguration(
            replicated_storage_pool_name="nowhere",
            topology="Ignored",
            failures_to_tolerate=1,
            guaranteed_minimum_data_redundancy=1,
            volume_access="Any",
        )
        await system.create_manual_volume(configuration=config)
        await system.clock.sleep(10)
        reason, message = await reason_of(system, ReplicatedVolume, "vol", "ConfigurationReady")
        assert reason == "InvalidConfiguration"
        assert "nowhere does not exist" in message
        await settled(system)

    run_system(story)


@pytest.mark.parametrize(
    ("name", "fields", "said"),
    [
        ("pair too far apart", {"ftt": 0, "gmdr": 2}, "must be at most 1"),
        ("no protection in zones", {"ftt": 0, "gmdr": 0, "topology": "TransZonal"}, "requires topology Ignored"),
        ("out of range", {"ftt": 3, "gmdr": 2}, "failuresToTolerate"),
        (
            "wrong zone count",
            {"ftt": 1, "gmdr": 2, "topology": "TransZonal", "zones": ("a", "b", "c")},
            "numbers of zones",
        ),
    ],
)
def test_impossible_class_is_refused_by_the_api(name: str, fields: dict[str, object], said: str) -> None:
    async def story(system: System) -> None:
        with pytest.raises(errors.Invalid, match=said):
            await system.create_class(ready=False, **fields)  # pyright: ignore[reportArgumentType]

    run_system(story)
    assert name


def test_class_that_the_nodes_cannot_carry() -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=2, gmdr=2, ready=False)
        await system.clock.sleep(20)
        reason, message = await reason_of(system, ReplicatedStorageClass, "fast", "Ready")
        assert reason == "InsufficientEligibleNodes"
        assert "5D (FTT=2, GMDR=2, Ignored) needs 5 nodes" in message
        await system.create_volume()
        await system.clock.sleep(10)
        reason, message = await reason_of(system, ReplicatedVolume, "vol", "ConfigurationReady")
        assert reason == "WaitingForStorageClass"
        assert "needs 5 nodes" in message
        await settled(system)

    run_system(story, SystemOptions(shape=Shape(nodes=3)))


def test_no_capacity_says_so_and_recovers_by_itself() -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=0, gmdr=0)
        await system.create_volume("big", size="40Gi")
        await system.clock.sleep(90)
        reason, message = await reason_of(system, ReplicatedVolume, "big", "Scheduled")
        assert reason == "ReplicasNotScheduled"
        assert "no capacity" in message
        await system.create_volume("small", size="64Mi")
        await system.formed("small")
        await system.delete(ReplicatedVolume, "big")
        await system.gone(ReplicatedVolume, "big")
        await system.clock.sleep(30)
        await system.check_no_orphans()

    run_system(story, SystemOptions(shape=Shape(nodes=3, thin=False, group_size=10 * GIB)))


def test_name_that_is_too_long_is_refused_by_the_api() -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=0, gmdr=0)
        with pytest.raises(errors.Invalid, match="92"):
            await system.create_volume("v" * 93)
        await system.create_volume("v" * 92)
        await system.formed("v" * 92)

    run_system(story)


def test_attachment_on_a_node_that_is_not_eligible() -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=0, gmdr=0)
        await system.create_volume()
        await system.formed()
        attachment = await system.create_attachment("vol", "no-such-node")
        await system.clock.sleep(10)
        _, reason, message = await stories.condition_of(system, attachment, "Attached")
        assert reason == "NodeNotEligible"
        assert message.startswith("Node is not eligible for storage class fast (pool auto-rsp-")
        await settled(system)

    run_system(story)

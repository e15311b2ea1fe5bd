"""Operations on one node: those that are refused say why, those that run are judged by state."""

from __future__ import annotations

import pytest

from quorate.agent.actual import ActualPeer, ActualVolume
from quorate.agent.operation.execute import Refused, guard
from quorate.api.drbd_resource_operation import OperationType, Phase
from tests.agent.single import (
    configured,
    create,
    one,
    with_data,
)
from tests.agent.test_plan import actual, actual_peer
from tests.agent.world import World


@pytest.mark.parametrize(
    ("kind", "annotation", "text"),
    [
        ("Outdate", None, "not supported"),
        ("CreateSnapshot", None, "not supported"),
        ("ForcePrimary", None, "annotation"),
        ("ForcePrimary", "rv-0", "an ordinary promotion is the way"),
        ("Invalidate", None, "must exist elsewhere"),
        ("Verify", None, "no connected peer"),
        ("CreateNewUUID", None, "fresh disks only"),
    ],
)
def test_operations_that_are_refused_end_in_failed_with_a_text(
    kind: OperationType, annotation: str | None, text: str
) -> None:
    async def story(world: World) -> None:
        await with_data(world)
        annotations = {"sds-replicated-volume.deckhouse.io/confirm-data-loss": annotation} if annotation else None
        ended = await world.operate("refused", 0, kind, annotations=annotations)
        assert ended.status.phase == Phase.FAILED
        assert text in ended.status.message
        assert ended.status.completed_at

    one(story)


OUTDATED = ActualVolume(3, disk_state="Outdated", backing_disk="/dev/vg/x", disk_options={}, open=False)


@pytest.mark.parametrize(
    ("volume", "peers", "text"),
    [
        (OUTDATED, (actual_peer(1),), "peer-1 has UpToDate data and is connected"),
        (ActualVolume(3, disk_state="Diskless", open=False), (), "no local disk"),
        (OUTDATED, (actual_peer(1, disk_state="Outdated"),), ""),
        (OUTDATED, (actual_peer(1, connection_state="Connecting", disk_state="DUnknown"),), ""),
    ],
)
def test_a_promotion_is_forced_only_while_no_current_copy_is_in_reach(
    volume: ActualVolume, peers: tuple[ActualPeer, ...], text: str
) -> None:
    found = actual(*peers, volume=volume)
    if not text:
        guard("ForcePrimary", found, volume)
        return
    with pytest.raises(Refused, match=text):
        guard("ForcePrimary", found, volume)


def test_an_operation_on_nothing_fails() -> None:
    async def story(world: World) -> None:
        ended = await world.operate("nothing", 0, "Verify")
        assert "does not exist" in ended.status.message

    one(story)


def test_a_forced_promotion_declares_the_only_copy_current() -> None:
    async def story(world: World) -> None:
        await create(world, quorum=1, redundancy=0)
        annotations = {"sds-replicated-volume.deckhouse.io/confirm-data-loss": "rv-0"}
        ended = await world.operate("force", 0, "ForcePrimary", annotations=annotations)
        assert ended.status.phase == Phase.SUCCEEDED, ended.status.message

        async def current() -> bool:
            status = (await world.drbdr(0)).status
            active = status.active_configuration
            return active is not None and (active.role, status.disk_state) == ("Secondary", "UpToDate")

        await world.eventually(current, "current, and Secondary again as the spec says")
        await configured(world)

    one(story)

"""What must not matter: killed and doubled controllers, a paused leader, a restarted API server, compacted history, crowds."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from collections.abc import Awaitable
from functools import partial
from itertools import groupby

from quorate.api.lease import Lease
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.value import replace
from quorate.local.shape import NAMESPACE, Shape
from quorate.machinery import errors
from quorate.verification.system.data import check_contents
from quorate.verification.system.system import System
from quorate.verification.system.writer import acknowledging
from tests.kube import etcd
from tests.kube.accounts import AGENT, CONTROLLER, user
from tests.kube.audit import Audit, Entry
from tests.kube.servers import ControlPlane
from tests.kube.worlds import World, system_on, world_on
from tests.system import stories

LEASE = "sds-replicated-volume-controller"
SMALL = Shape(nodes=3)


def decisions(world: World) -> list[Entry]:
    """What the controllers changed, without heartbeats and side notes."""
    return [entry for entry in world.audit.writes(user(CONTROLLER)) if entry.resource not in ("leases", "events")]


def check_nothing_was_made_twice(world: World) -> None:
    """Every object was created once and deleted at most once."""
    created = Counter((entry.resource, entry.name) for entry in decisions(world) if entry.verb == "create")
    assert not [what for what, times in created.items() if times > 1]


async def killed_after(world: World, act: Awaitable[object], writes: int) -> None:
    """Start a controller, do something, and kill the controller once it has written so much about it."""
    process = await world.processes.controller()
    await process.ready()
    since = Audit(world.plane.audit_log)
    await act

    async def written() -> bool:
        return len(since.writes(user(CONTROLLER))) >= writes

    await world.system.until(written, 30, f"the controller has written {writes} times")
    await process.kill()


async def holder(world: World) -> str:
    """Who holds the lease, empty when nobody does."""
    try:
        return (await world.system.cluster.client.get(Lease, LEASE, NAMESPACE)).spec.holder_identity
    except errors.NotFound:
        return ""


async def lease_moves(world: World, before: str = "") -> str:
    """Wait until somebody else than `before` holds the lease; the answer is who."""

    async def moved() -> bool:
        return await holder(world) not in ("", before)

    await world.system.until(moved, 60, "another process leads")
    return await holder(world)


def pid_of(identity: str) -> int:
    """The process of a lease holder, whose identity is host, pid and a random part."""
    return int(identity.split("_")[-2])


async def test_a_controller_killed_at_any_moment_is_taken_up_by_the_next(plane: ControlPlane) -> None:
    """Killed while a class is made, while a volume forms, while it is attached and while it is deleted."""
    async with world_on(plane, SMALL) as world:
        system = world.system
        await killed_after(world, system.create_class(ready=False), 3)
        await killed_after(world, system.create_volume(), 12)
        await killed_after(world, asyncio.sleep(0), 5)
        await world.processes.controller()
        await system.formed()
        home = (await stories.diskful_nodes(system))[0]
        await world.processes.end()
        await killed_after(world, system.create_attachment("vol", home), 2)
        await world.processes.controller()
        (attachment,) = [found.metadata.name for found in await system.list(ReplicatedVolumeAttachment)]
        await system.attached(attachment)
        writer = await stories.start_writer(system, home)
        await writer.stop()
        await check_contents(system)
        await system.detach(attachment)
        await world.processes.end()
        await killed_after(world, system.delete(ReplicatedVolume, "vol"), 5)
        await world.processes.controller()
        await system.gone(ReplicatedVolume, "vol")
        await system.check_no_orphans()
        check_nothing_was_made_twice(world)


async def test_one_of_two_controllers_works_and_a_lost_leader_writes_no_more(plane: ControlPlane) -> None:
    """The leader is paused in the middle of a formation, the next one is killed: their writes never overlap."""
    async with world_on(plane, SMALL) as world:
        system = world.system
        running = [await world.processes.controller(name, elect=True) for name in ("one", "two")]
        for process in running:
            await process.ready()
        first = await lease_moves(world)
        paused = next(process for process in running if process.pid == pid_of(first))

        async def told() -> bool:
            return sorted([await process.readiness() for process in running]) == ["ok: leading", "ok: standing by"]

        await system.until(told, 30, "both are ready, and say who leads")
        assert await paused.readiness() == "ok: leading"
        await system.create_class()
        since = Audit(plane.audit_log)
        await system.create_volume()
        await system.until(partial(has_written, since, 10), 30, "the leader is in the middle of the formation")
        paused.signal(signal.SIGSTOP)
        second = await lease_moves(world, first)
        await system.create_volume("later")
        await system.formed()
        await system.formed("later")
        paused.signal(signal.SIGCONT)
        assert await asyncio.to_thread(paused.popen.wait, 180) == 1, "a leader that lost the lease ends"
        await world.processes.controller("three", elect=True)
        await next(process for process in running if process.pid == pid_of(second)).kill()
        await system.create_attachment("vol", (await stories.diskful_nodes(system))[0])
        third = await lease_moves(world, second)
        assert len({first, second, third}) == 3
        (attachment,) = [found.metadata.name for found in await system.list(ReplicatedVolumeAttachment)]
        await system.attached(attachment)
        writers = [entry.credential for entry in decisions(world)]
        reigns = [credential for credential, _ in groupby(writers)]
        assert len(reigns) == len(set(reigns)) == 3, "each leader's writes end before the next one's begin"
        check_nothing_was_made_twice(world)


async def has_written(since: Audit, times: int) -> bool:
    """Whether controllers wrote so often."""
    return len(since.writes(user(CONTROLLER))) >= times


async def test_the_api_server_may_restart_while_somebody_writes(plane: ControlPlane) -> None:
    async with system_on(plane, SMALL) as world:
        system = world.system
        await system.create_class()
        await system.create_volume()
        await system.formed()
        home = (await stories.diskful_nodes(system))[0]
        attachment = await system.attach("vol", home)
        writer = await stories.start_writer(system, home)
        await asyncio.to_thread(plane.stop, "kube-apiserver")
        await acknowledging(writer, 10)
        await asyncio.to_thread(plane.start_api_server)
        await system.create_volume("late")
        await system.formed("late")
        report = await writer.stop()
        assert report.failed == 0
        await check_contents(system)
        await system.detach(attachment)
        check_nothing_was_made_twice(world)


async def test_forgotten_history_makes_everybody_read_anew(plane: ControlPlane) -> None:
    """The controllers sleep while objects change, history is compacted and the API server restarts: 410, then a list."""
    async with world_on(plane, SMALL) as world:
        system = world.system
        controller = await world.processes.controller()
        await controller.ready()
        await system.create_class()
        await system.create_volume()
        await system.formed()
        controller.signal(signal.SIGSTOP)
        await system.create_volume("unseen")
        await ask_size(system, "96Mi")
        etcd.compact(plane)
        await asyncio.to_thread(plane.stop, "kube-apiserver")
        await asyncio.to_thread(plane.start_api_server)
        since = Audit(plane.audit_log)
        controller.signal(signal.SIGCONT)
        await system.formed("unseen")
        await stories.set_size(system, "96Mi")
        assert "version is too old, reading the complete list" in controller.said(), (
            "history is gone, and nobody noticed"
        )
        lists = [entry for entry in since.entries(user(CONTROLLER)) if entry.verb == "list" and entry.code == 200]
        assert "replicatedvolumes" in {entry.resource for entry in lists}


async def ask_size(system: System, size: str) -> None:
    """Ask for a size without waiting for it."""
    wanted = Quantity.parse(size)
    await system.edit(ReplicatedVolume, "vol", lambda found: replace(found, spec=replace(found.spec, size=wanted)))


async def test_fifty_volumes_at_once(plane: ControlPlane) -> None:
    async with system_on(plane, SMALL) as world:
        system = world.system
        await system.create_class()
        names = [f"vol-{number}" for number in range(50)]
        await asyncio.gather(*(system.create_volume(name) for name in names))
        await system.until(partial(all_formed, system, names), 120, "fifty volumes are formed")
        nodes = [(await stories.diskful_nodes(system, name))[0] for name in names[:10]]
        attached = await asyncio.gather(*(system.attach(name, node) for name, node in zip(names, nodes, strict=False)))
        await asyncio.gather(*(system.detach(attachment) for attachment in attached))
        await asyncio.gather(*(system.delete(ReplicatedVolume, name) for name in names))

        async def all_gone() -> bool:
            return not await system.list(ReplicatedVolume)

        await system.until(all_gone, 120, "fifty volumes are gone")
        await system.check_no_orphans()
        assert not world.audit.refused(user(CONTROLLER))
        assert not world.audit.refused(user(AGENT))


async def all_formed(system: System, names: list[str]) -> bool:
    """Whether all volumes are there and have what they need; one list instead of a request per volume."""
    found = await system.list(ReplicatedVolume)
    done = [volume.metadata.name for volume in found if is_formed(volume)]
    return sorted(done) == sorted(names)


def is_formed(volume: ReplicatedVolume) -> bool:
    """Formed, with every copy UpToDate."""
    status, observed = volume.status, volume.status.observed_protection
    settled = status.datamesh_revision > 0 and not status.datamesh_transitions
    return settled and observed is not None and observed.up_to_date_voters == observed.total_voters > 0

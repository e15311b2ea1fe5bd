"""The acts of the tour, in order. Each is narrated in two lines, does something real and ends with checks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.demo.stage import Stage

VOLUMES = (("archive", "two-copies", 0, 1, "2D"), ("cache", "economy", 1, 0, "2D+1TB"), ("orders", "safe", 1, 1, "3D"))
"""Volume, class, failures to tolerate, guaranteed redundancy, and the layout that follows from them."""
HERO = "orders"


@dataclass(frozen=True)
class Check:
    """Something that had to be so."""

    name: str
    ok: bool
    detail: str


@dataclass
class Checks:
    """What an act has checked so far."""

    done: list[Check] = field(default_factory=list[Check])

    def that(self, name: str, ok: bool, detail: str) -> None:
        self.done.append(Check(name, ok, detail))


@dataclass(frozen=True)
class Act:
    """One act; `speed` is how many seconds of the cluster pass in one second of the viewer."""

    name: str
    title: str
    lines: tuple[str, str]
    play: Callable[[Stage, Checks], Awaitable[None]]
    speed: float


async def _data(stage: Stage, checks: Checks) -> None:
    """Every acknowledged write is readable, and on every copy that counts."""
    blocks, lost, copies = await stage.io.check(HERO)
    checks.that("data", lost == 0 and copies > 0, f"{blocks} blocks read back, {lost} lost, {copies} copies compared")


async def _classes(stage: Stage, checks: Checks) -> None:
    for _, name, ftt, gmdr, _ in VOLUMES:
        await stage.create_class(name, ftt, gmdr)
    for _, name, *_ in VOLUMES:
        await stage.until(lambda name=name: stage.class_ready(name), 60, f"class {name} is ready")
    checks.that("classes", True, f"{len(VOLUMES)} classes are ready")


async def _form(stage: Stage, checks: Checks) -> None:
    for volume, name, *_ in VOLUMES:
        await stage.create_volume(volume, name)
    for volume, _, _, _, layout in VOLUMES:
        await stage.until(lambda v=volume, x=layout: stage.has_layout(v, x), 120, f"{volume} has the layout {layout}")
        copies = len(set((await stage.digests(volume)).values()))
        checks.that(volume, copies == 1, f"layout {layout}, all copies equal")


async def _attach(stage: Stage, checks: Checks) -> None:
    home = (await stage.copies_on(HERO))[0]
    attachment = await stage.create_attachment(HERO, home)
    await stage.until(lambda: stage.is_attached(attachment), 60, f"{HERO} is attached on {home}")
    checks.that("attached", True, f"{HERO} is a block device on {home}")
    stage.start_writer(HERO)
    count = await stage.acknowledging(40)
    checks.that("writes", True, f"{count} writes acknowledged")
    await _data(stage, checks)


async def _lose_node(stage: Stage, checks: Checks) -> None:
    writer = stage.writer
    assert writer is not None
    victim = next(node for node in await stage.copies_on(HERO) if node != writer.node)
    before = writer.acknowledged
    await stage.cluster.crash_node(victim)
    await stage.acknowledging(60, seconds=120)
    await stage.clock.sleep(3)
    checks.that("io goes on", writer.failed == 0, f"{writer.acknowledged - before} writes since {victim} lost power")
    checks.that("pause", writer.longest_pause < 15, f"longest pause {writer.longest_pause:.1f} s, then without it")
    left = len(await stage.disks_of(HERO))
    checks.that("copies", left == 2, f"{left} of 3 copies carry on")
    await _data(stage, checks)


async def _repair(stage: Stage, checks: Checks) -> None:
    (victim,) = [name for name, node in stage.cluster.simulator.nodes.items() if not node.running]
    stage.cluster.restart_node(victim)
    for volume, _, _, _, layout in VOLUMES:
        await stage.until(lambda v=volume, x=layout: stage.has_layout(v, x), 300, f"{volume} is whole again")
    await stage.until(lambda: _all_current(stage, 3), 120, "the copy that missed writes has caught up")
    checks.that("resync", True, f"{victim} copied only what it had missed; 3 copies again")
    writer = stage.writer
    assert writer is not None
    await stage.acknowledging(10)
    checks.that("io goes on", writer.failed == 0, f"{writer.acknowledged} writes acknowledged, none failed")
    await _data(stage, checks)


async def _all_current(stage: Stage, copies: int) -> bool:
    return len(await stage.disks_of(HERO)) == copies


async def _grow(stage: Stage, checks: Checks) -> None:
    writer = stage.writer
    assert writer is not None
    before = writer.acknowledged
    await stage.set_promise("safe", 2, 2)
    await stage.until(lambda: stage.has_layout(HERO, "5D"), 900, f"{HERO} survives two failures")
    await stage.until(lambda: _all_current(stage, 5), 120, "five copies are current")
    await stage.acknowledging(10)
    checks.that("layout", True, f"{HERO} went from 3D to 5D while attached")
    checks.that("io goes on", writer.failed == 0, f"{writer.acknowledged - before} writes meanwhile, none failed")
    await _data(stage, checks)


async def _compare(stage: Stage, checks: Checks) -> None:
    writer = stage.writer
    assert writer is not None
    home = writer.node
    await _data(stage, checks)
    await stage.stop_writer()
    await stage.delete(ReplicatedVolumeAttachment, f"{HERO}-on-{home}")
    gone = f"{HERO}-on-{home}"
    await stage.until(lambda: stage.is_gone(ReplicatedVolumeAttachment, gone), 60, f"{HERO} is detached")
    checks.that("acknowledged", stage.acknowledged > 0, f"{stage.acknowledged} writes acknowledged in all")
    digests = await stage.digests(HERO)
    equal = len(digests) == 5 and len(set(digests.values())) == 1
    checks.that("disks", equal, f"{len(digests)} disks below DRBD, checksum {next(iter(digests.values()), '')[:8]}")


async def _delete(stage: Stage, checks: Checks) -> None:
    for volume, *_ in VOLUMES:
        await stage.delete(ReplicatedVolume, volume)
    for volume, *_ in VOLUMES:
        await stage.until(lambda v=volume: stage.is_gone(ReplicatedVolume, v), 120, f"{volume} is gone")
    for _, name, *_ in VOLUMES:
        await stage.delete(ReplicatedStorageClass, name)
    await stage.until(lambda: _nothing_left(stage), 60, "nothing is left on the nodes")
    checks.that("clean", True, "no DRBD resource and no logical volume is left on any node")


async def _nothing_left(stage: Stage) -> bool:
    return not stage.leftovers()


ACTS = (
    Act(
        "classes",
        "Five nodes in three zones, three promises",
        (
            "A storage class says how many failures a volume must survive (FTT) and how",
            "many copies more than one a write must reach (GMDR). The layout follows.",
        ),
        _classes,
        0.2,
    ),
    Act(
        "volumes",
        "Three volumes form",
        (
            "The controllers choose nodes and publish a mesh; the agent of each node makes",
            "LVM volumes and DRBD devices with the real command lines and reports back.",
        ),
        _form,
        0.5,
    ),
    Act(
        "attach",
        "Attach and write",
        (
            "'orders' becomes a block device on one node (marked *). A writer numbers each",
            "write and remembers which ones were acknowledged.",
        ),
        _attach,
        2.0,
    ),
    Act(
        "node-down",
        "A node with a copy loses power",
        (
            "Writes wait until DRBD notices the silence, then go on: two of three copies",
            "are a majority. Nothing that was acknowledged may be missing.",
        ),
        _lose_node,
        3.0,
    ),
    Act(
        "repair",
        "The node returns",
        (
            "Its agent brings DRBD up from what the API says. Only blocks written while it",
            "was away are copied: the others kept a bitmap of what it missed.",
        ),
        _repair,
        0.75,
    ),
    Act(
        "layout",
        "More safety, while in use",
        (
            "The class now promises to survive two nodes: 3 copies become 5. Members join",
            "in small confirmed steps; quorum never drops below what is safe.",
        ),
        _grow,
        1.2,
    ),
    Act(
        "data",
        "Look below everything",
        (
            "The writer stops and the volume is detached. Then every disk under DRBD is",
            "compared with the others: five nodes, one content.",
        ),
        _compare,
        0.25,
    ),
    Act(
        "deletion",
        "Delete it all",
        (
            "Deleting a volume takes DRBD devices, LVM volumes and replicas down in order.",
            "At the end the nodes must be empty.",
        ),
        _delete,
        0.2,
    ),
)

"""A toy controller: a volume gets two replicas and a condition, and takes them along when it is deleted."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as dataclass_replace

from quorate.api import conditions
from quorate.api.indexes import RVR_BY_VOLUME
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import ReplicatedVolume, ReplicatedVolumeSpec
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec
from quorate.api.resources import controller_reference, ref_of
from quorate.api.value import replace
from quorate.machinery.controller import ControllerSpec, for_, owns
from quorate.machinery.effects import Answers, Create, Decision, Delete, Effect, Half, Mode, Patch
from quorate.machinery.reader import Reader

FINALIZER = "toy.quorate.io/keep"
FORMED = "Formed"
COUNT = 2


@dataclass(frozen=True)
class Snapshot:
    """What the toy reads."""

    volume: ReplicatedVolume | None
    replicas: tuple[ReplicatedVolumeReplica, ...]


def gather(reader: Reader, key: str) -> Snapshot:
    return Snapshot(reader.get(ReplicatedVolume, key), reader.by_index(ReplicatedVolumeReplica, RVR_BY_VOLUME, key))


def decide(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
    del answers
    volume = snapshot.volume
    if volume is None:
        return Decision()
    if volume.metadata.deleting:
        return Decision(effects=_take_along(volume, snapshot.replicas))
    effects: list[Effect] = []
    if FINALIZER not in volume.metadata.finalizers:
        effects.append(Patch(volume, with_finalizer(volume), Half.MAIN, "keep until the replicas are gone"))
    present = [replica.metadata.name for replica in snapshot.replicas]
    names = [f"{volume.metadata.name}-{number}" for number in range(COUNT)]
    effects.extend(Create(new_replica(volume, name), "wanted") for name in names if name not in present)
    formed = all(name in present for name in names)
    reported = with_condition(volume, FORMED, formed, now)
    if reported.status != volume.status:
        effects.append(Patch(volume, reported, Half.STATUS, "report", Mode.REPORT))
    return Decision(effects=tuple(effects))


def _take_along(volume: ReplicatedVolume, replicas: tuple[ReplicatedVolumeReplica, ...]) -> tuple[Effect, ...]:
    if replicas:
        return tuple(Delete(replica, "the volume is deleted", (ref_of(volume),)) for replica in replicas)
    if FINALIZER not in volume.metadata.finalizers:
        return ()
    finalizers = tuple(name for name in volume.metadata.finalizers if name != FINALIZER)
    freed = replace(volume, metadata=replace(volume.metadata, finalizers=finalizers))
    return (Patch(volume, freed, Half.MAIN, "the replicas are gone", audit=(("volume", volume.metadata.name),)),)


def with_finalizer(volume: ReplicatedVolume) -> ReplicatedVolume:
    finalizers = (*volume.metadata.finalizers, FINALIZER)
    return replace(volume, metadata=replace(volume.metadata, finalizers=finalizers))


def with_condition(volume: ReplicatedVolume, type_: str, value: bool, now: float) -> ReplicatedVolume:
    changed = conditions.set_(
        volume.status.conditions,
        type_,
        status="True" if value else "False",
        reason="Counted",
        message="",
        generation=volume.metadata.generation,
        now=now,
    )
    return replace(volume, status=replace(volume.status, conditions=changed))


def new_volume(name: str) -> ReplicatedVolume:
    spec = ReplicatedVolumeSpec(size=Quantity.parse("1Gi"), replicated_storage_class_name="class")
    return ReplicatedVolume(metadata=ObjectMeta(name=name), spec=spec)


def new_replica(volume: ReplicatedVolume, name: str) -> ReplicatedVolumeReplica:
    meta = ObjectMeta(name=name, owner_references=(controller_reference(volume),))
    spec = ReplicatedVolumeReplicaSpec(replicated_volume_name=volume.metadata.name, type="Diskful")
    return ReplicatedVolumeReplica(metadata=meta, spec=spec)


def toy(name: str = "toy-controller", concurrency: int = 10) -> ControllerSpec[Snapshot]:
    """The controller as data."""
    watches = (for_(ReplicatedVolume), owns(ReplicatedVolumeReplica, ReplicatedVolume))
    spec = ControllerSpec(name=name, watches=watches, gather=gather, decide=decide)
    return dataclass_replace(spec, concurrency=concurrency)

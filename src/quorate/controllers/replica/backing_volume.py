"""The backing volume of a diskful replica: wait for an old one, create, grow, replace, clean up (seed 001).

Guarantees
* a volume is deleted only because the replica is committed to be without one: a diskless member type, a diskless spec of a
  replica that has not joined, a replica that is going away, or a better volume already in use. Anything merely unknown - a
  missing pool, a missing volume, an unfinished placement, a stale view - keeps what is there (trap 16);
* our finalizer on a deleted volume comes off only when DRBD does not use the volume any more;
* the size follows the larger of the asked and the published size, so one full pool never blocks a published size.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api.labels import FINALIZER_REPLICA
from quorate.api.lvm_logical_volume import LVMLogicalVolume, LVMLogicalVolumeSpec, Phase, Thin
from quorate.api.meta import ObjectMeta
from quorate.api.names import llv_name
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import MemberType
from quorate.api.replicated_volume_replica import BackingVolumeReadyCondition
from quorate.api.sizes import align_4ki, lower_size
from quorate.api.value import replace
from quorate.controllers.replica.eligibility import Eligibility, compute_storage_eligibility
from quorate.controllers.replica.metadata import (
    audit,
    ensure_child_metadata,
    owned_by_earlier_replica,
    refs,
    without_finalizer,
)
from quorate.controllers.replica.situation import Situation
from quorate.controllers.replica.verdict import Verdict
from quorate.datamesh import members
from quorate.machinery.effects import Create, Delete, Effect, Half, Patch

R = BackingVolumeReadyCondition

MAX_NAME = 128
"""Characters that a DRBDResource has for the name of its logical volume (trap 11)."""
NOT_APPLICABLE = Verdict.false(R.NOT_APPLICABLE, "Replica needs no backing volume")
DELETING = Verdict.false(R.NOT_APPLICABLE, "Replica is being deleted")


@dataclass(frozen=True)
class Disk:
    """A logical volume in its role as backing volume."""

    name: str
    volume_group: str
    thin_pool: str
    size: int

    def same_place(self, other: Disk) -> bool:
        """Whether both are on the same volume group and thin pool."""
        return (self.volume_group, self.thin_pool) == (other.volume_group, other.thin_pool)


@dataclass(frozen=True)
class Wanted:
    """A backing volume shall exist."""

    disk: Disk


@dataclass(frozen=True)
class Unwanted:
    """No backing volume shall exist; existing ones go."""


@dataclass(frozen=True)
class Undecided:
    """It cannot be told yet; what exists stays."""

    verdict: Verdict


@dataclass(frozen=True)
class BackingVolumeOutcome:
    """What to do about the backing volume, and what the DRBD resource may use."""

    verdict: Verdict | None
    intended: Disk | None = None
    target: Disk | None = None
    effects: tuple[Effect, ...] = ()
    retry_after: float | None = None


def disk_of(volume: LVMLogicalVolume) -> Disk:
    """A logical volume as it is now; size 0 until it is made."""
    return Disk(
        name=volume.metadata.name,
        volume_group=volume.spec.lvm_volume_group_name,
        thin_pool=volume.spec.thin.pool_name if volume.spec.thin is not None else "",
        size=volume.status.actual_size.value if volume.status.actual_size is not None else 0,
    )


def compute_actual_disk(situation: Situation) -> Disk | None:
    """The volume that the DRBDResource names, if it exists."""
    name = situation.drbdr.spec.lvm_logical_volume_name if situation.drbdr is not None else ""
    volume = find_volume(situation, name)
    return disk_of(volume) if volume is not None else None


def find_volume(situation: Situation, name: str) -> LVMLogicalVolume | None:
    """A logical volume of the snapshot by name."""
    return next((volume for volume in situation.snapshot.volumes if volume.metadata.name == name), None)


def compute_intended_size(situation: Situation) -> int:
    """Size of the lower device for the larger of the asked and the published size (ruling on 001 backing size)."""
    volume, datamesh = situation.volume, situation.datamesh
    assert volume is not None
    assert datamesh is not None
    return lower_size(max(align_4ki(volume.spec.size.value), align_4ki(datamesh.size.value)))


def compute_intended(situation: Situation, actual: Disk | None) -> Wanted | Unwanted | Undecided:
    """Whether a backing volume shall exist, and which."""
    member, spec = situation.member, situation.replica.spec
    if member is not None and members.needs_backing_volume(member.type):
        if not member.lvm_volume_group_name:
            return Undecided(Verdict.false(R.PENDING_SCHEDULING, "Waiting for storage assignment"))
        # Members are not checked against the pool again: their data is where it is.
        return Wanted(
            _intended_disk(situation, actual, member.lvm_volume_group_name, member.lvm_volume_group_thin_pool_name)
        )
    # A diskless member whose spec is diskful is on its way to a disk: the volume is made before the change.
    if spec.type != MemberType.DISKFUL or situation.deleting:
        return Unwanted()
    return _compute_intended_by_spec(situation, actual)


def _compute_intended_by_spec(situation: Situation, actual: Disk | None) -> Wanted | Undecided:
    spec, pool = situation.replica.spec, situation.snapshot.pool
    if not spec.node_name or not spec.lvm_volume_group_name:
        what = "node" if not spec.node_name else "storage"
        return Undecided(Verdict.false(R.PENDING_SCHEDULING, f"Waiting for {what} assignment"))
    if pool is None:
        return Undecided(
            Verdict.unknown(R.WAITING_FOR_REPLICATED_VOLUME, "Waiting for ReplicatedStoragePool to be available")
        )
    eligibility = compute_storage_eligibility(pool, spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name)
    if eligibility is not Eligibility.ELIGIBLE:
        return Undecided(
            Verdict.false(
                R.PENDING_SCHEDULING,
                f"Waiting for eligible storage: {eligibility.value} is not eligible in ReplicatedStoragePool {pool.name}",
            )
        )
    return Wanted(_intended_disk(situation, actual, spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name))


def _intended_disk(situation: Situation, actual: Disk | None, volume_group: str, thin_pool: str) -> Disk:
    name = llv_name(situation.replica.metadata.name, volume_group, thin_pool)
    intended = Disk(name, volume_group, thin_pool, compute_intended_size(situation))
    # The volume already in use on the same place keeps its name (migration).
    return replace_name(intended, actual.name) if actual is not None and actual.same_place(intended) else intended


def replace_name(disk: Disk, name: str) -> Disk:
    """The same disk under another name."""
    return Disk(name, disk.volume_group, disk.thin_pool, disk.size)


def reconcile_backing_volume(situation: Situation, rejection: str = "") -> BackingVolumeOutcome:
    """What to do about the backing volume now. `rejection` is why the API server refused the last create or resize."""
    volumes = situation.snapshot.volumes
    if situation.should_not_exist:
        effects = _remove(situation, volumes, "replica is being deleted")
        return BackingVolumeOutcome(DELETING if volumes else None, effects=effects)
    actual = compute_actual_disk(situation)
    if situation.datamesh is None or situation.stale:
        verdict = Verdict.unknown(R.WAITING_FOR_REPLICATED_VOLUME, "Waiting for ReplicatedVolume to be ready")
        return BackingVolumeOutcome(verdict, target=actual)
    match compute_intended(situation, actual):
        case Undecided(verdict):
            return BackingVolumeOutcome(verdict, target=actual)
        case Unwanted():
            effects = _remove(situation, volumes, "replica needs no backing volume")
            return BackingVolumeOutcome(NOT_APPLICABLE if volumes else None, effects=effects)
        case Wanted(disk):
            return _ensure_disk(situation, disk, actual, rejection)


def _ensure_disk(situation: Situation, intended: Disk, actual: Disk | None, rejection: str) -> BackingVolumeOutcome:
    existing = find_volume(situation, intended.name)
    if existing is not None and situation.member is None and _is_leftover(situation, existing):
        verdict = Verdict.false(R.PROVISIONING, f"Waiting for the old LVMLogicalVolume {intended.name} to be removed")
        effects = _remove(situation, (existing,), "volume of an earlier replica")
        return BackingVolumeOutcome(verdict, intended=intended, effects=effects)
    if existing is None:
        if len(intended.name) > MAX_NAME:
            rejection = (
                f"Name of the LVMLogicalVolume would have {len(intended.name)} characters, {MAX_NAME} are possible: "
                "the ReplicatedVolume needs a shorter name"
            )
        if rejection:
            return BackingVolumeOutcome(Verdict.false(R.PROVISIONING_FAILED, rejection), intended, actual)
        what = "Creating" if actual is None else f"Replacing LVMLogicalVolume {actual.name} by"
        reason = R.PROVISIONING if actual is None else R.REPROVISIONING
        create = Create(_build_volume(situation, intended), "backing volume of the replica")
        verdict = Verdict.false(reason, f"{what} LVMLogicalVolume {intended.name}")
        return BackingVolumeOutcome(verdict, intended, actual, (create,))
    return _ensure_existing(situation, existing, intended, actual, rejection)


def _is_leftover(situation: Situation, volume: LVMLogicalVolume) -> bool:
    """Whether a volume of the right name is an earlier replica's: it must be gone before the name is used again."""
    return volume.metadata.deleting or owned_by_earlier_replica(volume, situation.replica)


def _ensure_existing(
    situation: Situation, existing: LVMLogicalVolume, intended: Disk, actual: Disk | None, rejection: str
) -> BackingVolumeOutcome:
    current = disk_of(existing)
    too_small = current.size < intended.size
    grow = too_small and existing.status.phase == Phase.CREATED and existing.spec.size.value < intended.size
    target = _ensure_volume(situation, existing, intended.size if grow and not rejection else None)
    effects: tuple[Effect, ...] = (
        (Patch(existing, target, Half.MAIN, "size and metadata of the backing volume"),)
        if target is not existing
        else ()
    )
    verdict = _compute_verdict(existing, intended, actual, rejection if grow else "")
    ready = existing.status.phase == Phase.CREATED
    in_use = actual is not None and actual.name == existing.metadata.name
    # A volume in use stays the target whatever it is doing; a new one becomes it when it is ready and large enough.
    usable = current if in_use or (ready and not too_small) else actual
    if ready and not too_small:
        others = tuple(volume for volume in situation.snapshot.volumes if volume is not existing)
        effects = (*effects, *_remove_unused(situation, others, "replaced by another backing volume"))
    return BackingVolumeOutcome(verdict, intended, usable, effects)


def _compute_verdict(existing: LVMLogicalVolume, intended: Disk, actual: Disk | None, rejection: str) -> Verdict:
    name, current, status = intended.name, disk_of(existing), existing.status
    in_use = actual is not None and actual.name == name
    if rejection:
        return Verdict.false(R.RESIZE_FAILED, rejection)
    if status.phase == Phase.FAILED:
        text = f"LVMLogicalVolume {name} failed: {status.reason or 'no reason given'}"
        if not in_use and not current.size:
            return Verdict.false(R.PROVISIONING_FAILED, text)
        return Verdict.false(R.RESIZE_FAILED if current.size < intended.size else R.NOT_READY, text)
    if existing.metadata.deleting:
        return Verdict.false(R.NOT_READY, f"LVMLogicalVolume {name} is being deleted")
    if current.size < intended.size and current.size and status.phase in (Phase.CREATED, Phase.RESIZING):
        return Verdict.false(R.RESIZING, f"Resizing LVMLogicalVolume {name} to {Quantity.of(intended.size)}")
    if status.phase == Phase.CREATED and current.size >= intended.size:
        return Verdict.true(R.READY, f"LVMLogicalVolume {name} is ready")
    text = f"Waiting for LVMLogicalVolume {name} to become ready"
    if in_use:
        return Verdict.false(R.NOT_READY, text)
    return Verdict.false(R.PROVISIONING if actual is None else R.REPROVISIONING, text)


def _build_volume(situation: Situation, disk: Disk) -> LVMLogicalVolume:
    metadata = ensure_child_metadata(situation, ObjectMeta(name=disk.name))
    return LVMLogicalVolume(
        metadata=metadata,
        spec=LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=disk.name,
            type="Thin" if disk.thin_pool else "Thick",
            size=Quantity.of(disk.size),
            lvm_volume_group_name=disk.volume_group,
            thin=Thin(pool_name=disk.thin_pool) if disk.thin_pool else None,
        ),
    )


def _ensure_volume(situation: Situation, existing: LVMLogicalVolume, size: int | None) -> LVMLogicalVolume:
    metadata = ensure_child_metadata(situation, existing.metadata)
    spec = existing.spec if size is None else replace(existing.spec, size=Quantity.of(size))
    if metadata is existing.metadata and spec is existing.spec:
        return existing
    return replace(existing, metadata=metadata, spec=spec)


def _remove(situation: Situation, volumes: tuple[LVMLogicalVolume, ...], cause: str) -> tuple[Effect, ...]:
    """Delete, and once deleted let go of what DRBD does not use any more."""
    effects: list[Effect] = []
    decided_from = refs(situation.replica, situation.volume)
    for volume in volumes:
        if not volume.metadata.deleting:
            effects.append(Delete(volume, cause, decided_from, audit(situation)))
        elif FINALIZER_REPLICA in volume.metadata.finalizers and not _is_used(situation, volume):
            released = replace(volume, metadata=without_finalizer(volume.metadata))
            effects.append(Patch(volume, released, Half.MAIN, cause, decided_from=decided_from, audit=audit(situation)))
    return tuple(effects)


def _remove_unused(situation: Situation, volumes: tuple[LVMLogicalVolume, ...], cause: str) -> tuple[Effect, ...]:
    return _remove(situation, tuple(volume for volume in volumes if not _is_used(situation, volume)), cause)


def _is_used(situation: Situation, volume: LVMLogicalVolume) -> bool:
    """Whether DRBD shall have or still has the volume as its disk."""
    drbdr = situation.drbdr
    if drbdr is None:
        return False
    active = drbdr.status.active_configuration
    names = (drbdr.spec.lvm_logical_volume_name, active.lvm_logical_volume_name if active is not None else "")
    return volume.metadata.name in names

"""Step 3, Bootstrap data: one operation declares or copies the initial data; formation is complete when all copies are."""

from __future__ import annotations

from quorate.api import names
from quorate.api.drbd_resource_operation import (
    CreateNewUUID,
    DRBDResourceOperation,
    DRBDResourceOperationSpec,
    Phase,
)
from quorate.api.meta import ObjectMeta
from quorate.api.replicated_volume import DatameshMember, MemberType, ReplicatedVolumeStatus
from quorate.api.resources import controller_reference
from quorate.controllers.volume import replica_view, replicas
from quorate.controllers.volume.formation import progress, restart, transition
from quorate.controllers.volume.formation.tie_breakers import find_not_operational
from quorate.controllers.volume.outcome import Outcome
from quorate.controllers.volume.snapshot import Snapshot
from quorate.machinery.effects import Create, Delete

OPERATION_TYPE = "CreateNewUUID"


def step(snapshot: Snapshot, status: ReplicatedVolumeStatus, now: float) -> Outcome | ReplicatedVolumeStatus:
    """One pass of the step: an `Outcome` while it waits, the status when it is done."""
    expected = expected_operation(snapshot, status)
    found = snapshot.operation
    if found is not None and found.spec.formation_id != expected.spec.formation_id:
        return _replace_stale(snapshot, status, found, now)
    if found is None or found.metadata.deleting:
        if found is not None:
            return _wait(snapshot, status, "Waiting for an earlier operation to be deleted", now)
        waiting = _wait(snapshot, status, "Starting data bootstrap", now)
        return waiting if waiting.before else waiting.then(Create(obj=expected, cause="formation bootstraps the data"))
    if found.spec != expected.spec:
        return _wait(snapshot, status, f"Operation {found.metadata.name} has other parameters than expected", now)
    match found.status.phase:
        case Phase.SUCCEEDED:
            return _after_operation(snapshot, status, now)
        case Phase.FAILED:
            message = f"Data bootstrap failed on {found.spec.node_name}: {found.status.message}"
            return restart.wait(snapshot, status, message, progress.step_timeout(status), now)
        case _:
            return _wait(snapshot, status, f"Waiting for data bootstrap on node {found.spec.node_name}", now)


def _after_operation(
    snapshot: Snapshot, status: ReplicatedVolumeStatus, now: float
) -> Outcome | ReplicatedVolumeStatus:
    names_of_diskful = tuple(member.name for member in diskful_members(status))
    behind = replica_view.ids(
        replica
        for replica in snapshot.replicas
        if replica.metadata.name in names_of_diskful and not replica_view.is_up_to_date(replica)
    )
    if behind:
        return _wait(snapshot, status, f"Waiting for replicas [{behind}] to become UpToDate", now)
    problem = find_not_operational(snapshot, status, now)
    if problem:
        # Data is bootstrapped: this last wait never restarts (S27).
        said = transition.with_message(progress.ensure_progress(status, snapshot.replicas, now), problem)
        return Outcome(status=said)
    return transition.removed(status)


def _replace_stale(
    snapshot: Snapshot, status: ReplicatedVolumeStatus, stale: DRBDResourceOperation, now: float
) -> Outcome:
    """An operation of an earlier formation, recognised by id (decision 7), goes first."""
    waiting = _wait(snapshot, status, "Deleting the operation of an earlier formation", now)
    if waiting.before or stale.metadata.deleting:
        return waiting
    return waiting.then(Delete(obj=stale, cause="the operation belongs to an earlier formation"))


def _wait(snapshot: Snapshot, status: ReplicatedVolumeStatus, message: str, now: float) -> Outcome:
    timeout = progress.bootstrap_timeout(status, force_resync=is_force_resync(snapshot, status))
    return restart.wait(snapshot, status, message, timeout, now)


def diskful_members(status: ReplicatedVolumeStatus) -> tuple[DatameshMember, ...]:
    """Members with a disk, by id."""
    found = (member for member in status.datamesh.members if member.type == MemberType.DISKFUL)
    return tuple(sorted(found, key=lambda member: names.replica_id(member.name)))


def is_force_resync(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> bool:
    """Thick volumes start with different contents and are copied once; thin ones and single replicas are equal by birth."""
    thick = snapshot.pool is None or snapshot.pool.spec.type == "LVM"
    return thick and len(diskful_members(status)) > 1


def expected_operation(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> DRBDResourceOperation:
    """The operation this formation needs, on the diskful member with the lowest id."""
    volume = snapshot.existing_volume()
    source = diskful_members(status)[0]
    force_resync = is_force_resync(snapshot, status)
    return DRBDResourceOperation(
        metadata=ObjectMeta(
            name=names.formation_operation_name(volume.metadata.name),
            labels=replicas.volume_labels(volume),
            owner_references=(controller_reference(volume),),
        ),
        spec=DRBDResourceOperationSpec(
            node_name=source.node_name,
            drbd_resource_name=source.name,
            type=OPERATION_TYPE,
            create_new_uuid=CreateNewUUID(clear_bitmap=not force_resync, force_resync=force_resync),
            formation_id=status.formation.id if status.formation is not None else "",
        ),
    )

"""Step 1, Preconfigure: create the replicas, wait until DRBD is set up on each, check that they fit together.

Tie-breakers belong to the layout (decision 1): the diskful replicas and the tie-breakers are created together, and
everything else that is found is deleted.
"""

from __future__ import annotations

from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import Datamesh, MemberType, ReplicatedVolumeStatus, VolumeConfiguration
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica, ReplicaType
from quorate.api.sizes import align_4ki, usable_size
from quorate.api.value import replace
from quorate.controllers.volume import replica_view, replicas
from quorate.controllers.volume.formation import progress, restart, transition
from quorate.controllers.volume.outcome import Outcome
from quorate.controllers.volume.snapshot import Snapshot
from quorate.datamesh.layout import layout_of
from quorate.machinery.effects import Create, Effect


def begin(snapshot: Snapshot, status: ReplicatedVolumeStatus, now: float) -> ReplicatedVolumeStatus:
    """First entry: revision 1, system networks from the pool, the size in whole 4 KiB blocks, the transition record."""
    if transition.find(status) is not None:
        return status
    volume = snapshot.existing_volume()
    networks = snapshot.pool.spec.system_network_names if snapshot.pool is not None else ()
    size = Quantity.of(align_4ki(volume.spec.size.value))
    started = replace(
        status,
        datamesh_revision=1,
        datamesh=replace(Datamesh(), system_network_names=networks, size=size),
        datamesh_transitions=(*status.datamesh_transitions, transition.created(now)),
    )
    return progress.started(volume, started, now)


def wanted_counts(configuration: VolumeConfiguration) -> dict[ReplicaType, int]:
    """How many replicas of each type the layout has (computeIntendedDiskfulReplicaCount, plus tie-breakers)."""
    layout = layout_of(configuration.failures_to_tolerate, configuration.guaranteed_minimum_data_redundancy)
    return {"Diskful": layout.diskful, "TieBreaker": layout.tie_breakers}


def select_active(snapshot: Snapshot, configuration: VolumeConfiguration) -> tuple[ReplicatedVolumeReplica, ...]:
    """The replicas that formation goes on with: wanted types, not misplaced, not deleting, least progressed trimmed."""
    chosen: list[ReplicatedVolumeReplica] = []
    for type_, count in wanted_counts(configuration).items():
        usable = [
            replica
            for replica in snapshot.replicas
            if replica.spec.type == type_ and not replica.metadata.deleting and not replica_view.is_misplaced(replica)
        ]
        while len(usable) > count:
            usable.remove(least_progressed(usable))
        chosen.extend(usable)
    return tuple(sorted(chosen, key=replica_view.replica_id))


def least_progressed(candidates: list[ReplicatedVolumeReplica]) -> ReplicatedVolumeReplica:
    """Not scheduled before not preconfigured before any; the highest id among equals."""

    def rank(replica: ReplicatedVolumeReplica) -> tuple[int, int]:
        if not replica_view.is_scheduled(replica):
            stage = 0
        elif not replica_view.is_preconfigured(replica):
            stage = 1
        else:
            stage = 2
        return stage, -replica_view.replica_id(replica)

    return min(candidates, key=rank)


def step(snapshot: Snapshot, status: ReplicatedVolumeStatus, now: float) -> Outcome | ReplicatedVolumeStatus:
    """One pass of the step: an `Outcome` while it waits, the status when it is done."""
    configuration = status.configuration
    assert configuration is not None
    active = select_active(snapshot, configuration)
    clean = not any(r.metadata.deleting or replica_view.is_misplaced(r) for r in snapshot.replicas)
    creations = _creations(snapshot, status, configuration, active) if clean else ()
    deletions = _deletions(snapshot, active)
    if creations or deletions:
        message = (
            f"Creating {len(creations)} replica(s)" if creations else f"Deleting {len(deletions)} unwanted replica(s)"
        )
        waiting = _wait(snapshot, status, message, now)
        return waiting if waiting.before else waiting.then(*creations, *deletions)
    problem = (
        _deleting(snapshot)
        or _not_preconfigured(active)
        or _without_addresses(status, active)
        or _not_eligible(snapshot.pool, active)
        or _not_as_requested(active)
        or _too_small(status, active)
    )
    return _wait(snapshot, status, problem, now) if problem else status


def _wait(snapshot: Snapshot, status: ReplicatedVolumeStatus, message: str, now: float) -> Outcome:
    return restart.wait(snapshot, status, message, progress.step_timeout(status), now)


def _creations(
    snapshot: Snapshot,
    status: ReplicatedVolumeStatus,
    configuration: VolumeConfiguration,
    active: tuple[ReplicatedVolumeReplica, ...],
) -> tuple[Effect, ...]:
    """Missing replicas, only while none is deleting or misplaced: otherwise zombies would pile up."""
    volume = snapshot.existing_volume()
    missing: list[ReplicaType] = []
    for type_, count in wanted_counts(configuration).items():
        have = sum(replica.spec.type == type_ for replica in active)
        missing.extend(type_ for _ in range(count - have))
    numbers = replicas.free_ids(status, snapshot.replicas)
    return tuple(
        Create(obj=replicas.new_replica(volume, number, type_), cause="formation needs the replica")
        for number, type_ in zip(numbers, missing, strict=False)
    )


def _deletions(snapshot: Snapshot, active: tuple[ReplicatedVolumeReplica, ...]) -> tuple[Effect, ...]:
    """Everything that is not in the active set: misplaced, excess or made by somebody else."""
    kept = {replica.metadata.name for replica in active}
    effects: list[Effect] = []
    for replica in snapshot.replicas:
        if replica.metadata.name not in kept:
            effects.extend(
                replicas.forced_deletion(
                    replica, "formation does not want the replica", decided_from=(snapshot.existing_volume(),)
                )
            )
    return tuple(effects)


def _deleting(snapshot: Snapshot) -> str:
    deleting = replica_view.ids(r for r in snapshot.replicas if r.metadata.deleting)
    return f"Waiting for replicas [{deleting}] to be deleted" if deleting else ""


def _not_preconfigured(active: tuple[ReplicatedVolumeReplica, ...]) -> str:
    """computeFormationPreconfigureWaitMessage: only the groups that are not empty, failures with their reason inline."""
    unplaced = tuple(r for r in active if not replica_view.is_scheduled(r))
    failed = tuple(r for r in unplaced if replica_view.scheduling_failure(r))
    pending = tuple(r for r in unplaced if not replica_view.scheduling_failure(r))
    setting_up = tuple(r for r in active if replica_view.is_scheduled(r) and not replica_view.is_preconfigured(r))
    parts: list[str] = []
    if pending:
        parts.append(f"pending scheduling [{replica_view.ids(pending)}]")
    if failed:
        reasons = "; ".join(
            f"#{replica_view.replica_id(replica)}: {replica_view.scheduling_failure(replica)}" for replica in failed
        )
        parts.append(f"scheduling failed [{replica_view.ids(failed)}] ({reasons})")
    if setting_up:
        parts.append(f"preconfiguring [{replica_view.ids(setting_up)}]")
    return f"Waiting for replicas: {', '.join(parts)}" if parts else ""


def _without_addresses(status: ReplicatedVolumeStatus, active: tuple[ReplicatedVolumeReplica, ...]) -> str:
    networks = status.datamesh.system_network_names

    def lacks(replica: ReplicatedVolumeReplica) -> bool:
        have = tuple(address.system_network_name for address in replica.status.addresses)
        return any(network not in have for network in networks)

    found = replica_view.ids(r for r in active if lacks(r))
    return f"Waiting for replicas [{found}] to report addresses on networks {', '.join(networks)}" if found else ""


def _not_eligible(pool: ReplicatedStoragePool | None, active: tuple[ReplicatedVolumeReplica, ...]) -> str:
    if pool is None:
        return "Waiting for the ReplicatedStoragePool to be available"
    eligible = tuple(node.node_name for node in pool.status.eligible_nodes)
    found = replica_view.ids(r for r in active if r.spec.node_name not in eligible)
    return f"Replicas [{found}] are on nodes that are not eligible for pool {pool.metadata.name}" if found else ""


def _not_as_requested(active: tuple[ReplicatedVolumeReplica, ...]) -> str:
    def differs(replica: ReplicatedVolumeReplica) -> bool:
        request = replica.status.datamesh_request
        return request is None or (
            replica.spec.type,
            replica.spec.lvm_volume_group_name,
            replica.spec.lvm_volume_group_thin_pool_name,
        ) != (request.type, request.lvm_volume_group_name, request.thin_pool_name)

    found = replica_view.ids(r for r in active if differs(r))
    return f"The spec of replicas [{found}] differs from what they ask to join with" if found else ""


def _too_small(status: ReplicatedVolumeStatus, active: tuple[ReplicatedVolumeReplica, ...]) -> str:
    size = status.datamesh.size.value

    def small(replica: ReplicatedVolumeReplica) -> bool:
        if replica.spec.type != MemberType.DISKFUL:
            return False
        backing = replica.status.backing_volume
        return backing is None or backing.size is None or usable_size(backing.size.value) < size

    found = replica_view.ids(r for r in active if small(r))
    return f"The backing volumes of replicas [{found}] are too small for {status.datamesh.size}" if found else ""

"""Step 2, Establish connectivity: make the replicas members, then wait for configuration, connections and replication."""

from __future__ import annotations

import base64

from quorate.api.common import DiskState
from quorate.api.replicated_volume import (
    DatameshMember,
    EffectiveLayout,
    MemberType,
    ReplicatedVolumeStatus,
)
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import SharedSecret, replace
from quorate.controllers.volume import replica_view
from quorate.controllers.volume.formation import preconfigure, progress, restart
from quorate.controllers.volume.formation.tie_breakers import find_not_operational
from quorate.controllers.volume.outcome import Outcome
from quorate.controllers.volume.snapshot import Snapshot
from quorate.datamesh.layout import initial_quorum, layout_of
from quorate.machinery.effects import Answers, Entropy

SECRET_BYTES = 32
"""43 characters of unpadded base64; DRBD accepts up to 64."""
SHARED_SECRET_ALG = "SHA256"


def step(
    snapshot: Snapshot, status: ReplicatedVolumeStatus, answers: Answers, now: float
) -> Outcome | ReplicatedVolumeStatus:
    """One pass of the step: an `Outcome` while it waits, the status when it is done."""
    configuration = status.configuration
    assert configuration is not None
    active = preconfigure.select_active(snapshot, configuration)
    if not status.datamesh.members:
        return _add_members(snapshot, status, active, answers, now)
    problem = (
        _members_differ(status, active)
        or _not_configured(status, active)
        or _not_connected(active)
        or find_not_operational(snapshot, status, now)
        or _not_ready_for_bootstrap(active)
    )
    return _wait(snapshot, status, problem, now) if problem else status


def _wait(snapshot: Snapshot, status: ReplicatedVolumeStatus, message: str, now: float) -> Outcome:
    return restart.wait(snapshot, status, message, progress.step_timeout(status), now)


def _add_members(
    snapshot: Snapshot,
    status: ReplicatedVolumeStatus,
    active: tuple[ReplicatedVolumeReplica, ...],
    answers: Answers,
    now: float,
) -> Outcome:
    """All at once, diskful members directly (no liminal stage): nothing runs on the volume yet."""
    volume = snapshot.existing_volume()
    request = Entropy(purpose=f"shared secret of {volume.metadata.uid}", size=SECRET_BYTES)
    secret = answers.get(request)
    if not isinstance(secret, bytes):
        return Outcome(status=status, ask=(request,))
    configuration = status.configuration
    assert configuration is not None
    ftt, gmdr = configuration.failures_to_tolerate, configuration.guaranteed_minimum_data_redundancy
    members = tuple(_member(snapshot, status, replica) for replica in active)
    quorum, redundancy = initial_quorum(layout_of(ftt, gmdr), sum(m.type == MemberType.DISKFUL for m in members))
    datamesh = replace(
        status.datamesh,
        shared_secret=SharedSecret(base64.b64encode(secret).decode().rstrip("=")),
        shared_secret_alg=SHARED_SECRET_ALG,
        members=members,
        quorum=quorum,
        quorum_minimum_redundancy=redundancy,
    )
    published = replace(
        status,
        datamesh=datamesh,
        effective_layout=EffectiveLayout(failures_to_tolerate=ftt, guaranteed_minimum_data_redundancy=gmdr),
        baseline_guaranteed_minimum_data_redundancy=gmdr,
        datamesh_revision=status.datamesh_revision + 1,
    )
    message = f"Waiting for replicas [{replica_view.ids(active)}] to be configured"
    return _wait(snapshot, published, message, now)


def _member(snapshot: Snapshot, status: ReplicatedVolumeStatus, replica: ReplicatedVolumeReplica) -> DatameshMember:
    """A member record: zone from the pool, addresses from the replica, storage from its request (S43)."""
    request = replica.status.datamesh_request
    nodes = snapshot.pool.status.eligible_nodes if snapshot.pool is not None else ()
    zone = next((node.zone_name for node in nodes if node.node_name == replica.spec.node_name), "")
    networks = status.datamesh.system_network_names
    return DatameshMember(
        name=replica.metadata.name,
        type=replica.spec.type,
        node_name=replica.spec.node_name,
        zone=zone,
        addresses=tuple(a for a in replica.status.addresses if a.system_network_name in networks),
        lvm_volume_group_name=request.lvm_volume_group_name if request is not None else "",
        lvm_volume_group_thin_pool_name=request.thin_pool_name if request is not None else "",
        attached=False,
    )


def _members_differ(status: ReplicatedVolumeStatus, active: tuple[ReplicatedVolumeReplica, ...]) -> str:
    members = sorted(member.name for member in status.datamesh.members)
    if members == sorted(replica.metadata.name for replica in active):
        return ""
    return f"The members of the datamesh differ from the replicas [{replica_view.ids(active)}]"


def _not_configured(status: ReplicatedVolumeStatus, active: tuple[ReplicatedVolumeReplica, ...]) -> str:
    revision = status.datamesh_revision
    waiting = replica_view.ids(
        r for r in active if r.spec.type == MemberType.DISKFUL and not replica_view.is_configured(r, revision)
    )
    return f"Waiting for replicas [{waiting}] to be configured for revision {revision}" if waiting else ""


def _diskful(active: tuple[ReplicatedVolumeReplica, ...]) -> tuple[ReplicatedVolumeReplica, ...]:
    return tuple(replica for replica in active if replica.spec.type == MemberType.DISKFUL)


def _not_connected(active: tuple[ReplicatedVolumeReplica, ...]) -> str:
    diskful = _diskful(active)
    waiting = replica_view.ids(
        replica
        for replica in diskful
        if not all(replica_view.is_connected_to(replica, o.metadata.name) for o in diskful if o is not replica)
    )
    return f"Waiting for replicas [{waiting}] to connect to all diskful peers" if waiting else ""


def _not_ready_for_bootstrap(active: tuple[ReplicatedVolumeReplica, ...]) -> str:
    diskful = _diskful(active)

    def ready(replica: ReplicatedVolumeReplica) -> bool:
        others = (o.metadata.name for o in diskful if o is not replica)
        return replica_view.disk_state(replica) == DiskState.INCONSISTENT and all(
            replica_view.replicates_to(replica, name) for name in others
        )

    waiting = replica_view.ids(replica for replica in diskful if not ready(replica))
    if not waiting:
        return ""
    return (
        f"Waiting for replicas [{waiting}] to be ready for data bootstrap (disk Inconsistent, replication Established)"
    )

"""Replica requests: the volume's list follows the replicas' wishes (seed 000, ensureDatameshReplicaRequests).

Guarantees: the list is sorted and merged by numeric id (hazard H18); an entry whose request does not change keeps its time
and its message; a new or changed one starts over; one whose replica asks nothing any more disappears. The very same tuple
comes back when nothing changes.
"""

from __future__ import annotations

from quorate.api.replicated_volume import DatameshReplicaRequest, MembershipRequest
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.datamesh.members import id_of


def sync_requests(
    existing: tuple[DatameshReplicaRequest, ...], replicas: tuple[ReplicatedVolumeReplica, ...], now: str
) -> tuple[DatameshReplicaRequest, ...]:
    """The list of requests for the replicas as they are."""
    known = {id_of(entry.name): entry for entry in existing}
    wanted: dict[int, tuple[str, MembershipRequest]] = {}
    for rvr in replicas:
        if rvr.status.datamesh_request is not None:
            wanted[id_of(rvr.metadata.name)] = (rvr.metadata.name, rvr.status.datamesh_request)
    merged: list[DatameshReplicaRequest] = []
    for replica_id in sorted(wanted):
        name, request = wanted[replica_id]
        entry = known.get(replica_id)
        if entry is None or entry.name != name or entry.request != request:
            entry = DatameshReplicaRequest(name=name, request=request, first_observed_at=now)
        merged.append(entry)
    result = tuple(merged)
    return existing if len(result) == len(existing) and all(map(_same, result, existing)) else result


def _same(left: DatameshReplicaRequest, right: DatameshReplicaRequest) -> bool:
    return left is right


def with_messages(
    requests: tuple[DatameshReplicaRequest, ...], texts: dict[int, str]
) -> tuple[DatameshReplicaRequest, ...]:
    """The requests with the texts of this pass; one without a new text keeps the last."""
    changed = tuple(
        replace(entry, message=text)
        if (text := texts.get(id_of(entry.name), entry.message)) != entry.message
        else entry
        for entry in requests
    )
    return requests if all(map(_same, changed, requests)) else changed

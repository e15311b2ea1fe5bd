"""Projection of a replica onto the DRBD configuration of its node (facts/datamesh 2.2, facts/controllers 5.4).

One function, used by the replica controller, by the simulator's tests and by the model checker: what the datamesh says is what
every node is told. Pure and total: a member of a type this version does not know is configured like an Access member.

| who | q | qmr | peers |
|---|---|---|---|
| voter | datamesh q | datamesh qmr | all members (star members only to full-mesh ones) |
| other member | 32, unreachable: quorate through quorate peers only | datamesh qmr | the same |
| not a member | 32 | 32 | none; it still listens, so that it can report its addresses |
"""

from __future__ import annotations

from quorate.api.drbd_resource import UNREACHABLE_QUORUM, DRBDResourceSpec, Peer, PeerPath, SharedSecretAlg
from quorate.api.names import replica_id
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import Datamesh, DatameshMember, MemberType, ReplicatedVolume
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.sizes import align_4ki
from quorate.datamesh import members
from quorate.datamesh.features import Features

STOCK = Features()
"""What the stock module can do."""
_LIMINAL_FORM = {
    MemberType.DISKFUL: MemberType.LIMINAL_DISKFUL,
    MemberType.SHADOW_DISKFUL: MemberType.LIMINAL_SHADOW_DISKFUL,
}


def find_member(datamesh: Datamesh, name: str) -> DatameshMember | None:
    """The member of this name."""
    return next((member for member in datamesh.members if member.name == name), None)


def intended_member_type(member: DatameshMember | None, replica: ReplicatedVolumeReplica) -> str:
    """What the replica shall run as: its member type, else its spec; one that goes without being a member needs no disk."""
    if member is not None:
        return member.type
    return MemberType.ACCESS if replica.metadata.deleting else replica.spec.type


def target_member_type(intended: str, *, has_backing_volume: bool) -> str:
    """What it can run as now: a type with a disk is its liminal form until the disk exists."""
    return intended if has_backing_volume else _LIMINAL_FORM.get(intended, intended)


def are_connected(one: DatameshMember, other: DatameshMember) -> bool:
    """Whether two members have a connection: one is full mesh, and no emergency removal keeps them apart (decision 6)."""
    if one.name == other.name or not (members.is_full_mesh(one.type) or members.is_full_mesh(other.type)):
        return False
    return not any(
        left.tie_breakers_disconnected and right.type == MemberType.TIE_BREAKER
        for left, right in ((one, other), (other, one))
    )


def expected_peers(datamesh: Datamesh, member: DatameshMember) -> tuple[DatameshMember, ...]:
    """The members that a member is connected to, sorted by name."""
    connected = (other for other in datamesh.members if are_connected(member, other))
    return tuple(sorted(connected, key=lambda other: other.name))


def intended_drbd(
    volume: ReplicatedVolume,
    replica: ReplicatedVolumeReplica,
    *,
    logical_volume: str = "",
    existing: DRBDResourceSpec | None = None,
    features: Features = STOCK,
) -> DRBDResourceSpec:
    """The DRBD configuration of the replica's node.

    `logical_volume` is the backing volume that is ready for use, empty = none. `existing` is the present spec: node, node id,
    maintenance and the name to be renamed from are kept, and the size is never lowered.
    """
    datamesh = volume.status.datamesh
    member = find_member(datamesh, replica.metadata.name)
    target = target_member_type(intended_member_type(member, replica), has_backing_volume=bool(logical_volume))
    has_disk = members.has_disk(target)
    voter = member is not None and members.is_voter(member.type)
    return DRBDResourceSpec(
        node_name=existing.node_name if existing is not None else replica.spec.node_name,
        node_id=existing.node_id if existing is not None else replica_id(replica.metadata.name),
        actual_name_on_the_node=existing.actual_name_on_the_node if existing is not None else "",
        maintenance=existing.maintenance if existing is not None else "",
        system_networks=datamesh.system_network_names,
        state="Up",
        type="Diskful" if has_disk else "Diskless",
        lvm_logical_volume_name=logical_volume if has_disk else "",
        size=_compute_size(datamesh, existing) if has_disk else None,
        non_voting=target == MemberType.SHADOW_DISKFUL,
        role="Primary" if member is not None and member.attached else "Secondary",
        allow_two_primaries=member is not None and datamesh.multiattach,
        quorum=datamesh.quorum if voter else UNREACHABLE_QUORUM,
        quorum_minimum_redundancy=datamesh.quorum_minimum_redundancy if member is not None else UNREACHABLE_QUORUM,
        # Peers follow the member type, not the type it can run as now: peers keep the slot while the disk is away.
        peers=tuple(_peer(datamesh, other, features) for other in expected_peers(datamesh, member)) if member else (),
    )


def _compute_size(datamesh: Datamesh, existing: DRBDResourceSpec | None) -> Quantity:
    size = align_4ki(datamesh.size.value)
    if existing is not None and existing.size is not None and existing.size.value >= size:
        return existing.size
    return Quantity.of(size)


def _peer(datamesh: Datamesh, other: DatameshMember, features: Features) -> Peer:
    suspended = datamesh.tie_breakers_suspended and other.type == MemberType.TIE_BREAKER
    # Without the kernel option a suspended tie-breaker is hidden from the count altogether (decision 4, M1).
    visible = members.is_visible_to_quorum(other.type) and (features.peer_tiebreaker_option or not suspended)
    return Peer(
        name=other.name,
        node_id=replica_id(other.name),
        type="Diskful" if members.is_full_mesh(other.type) else "Diskless",
        allow_remote_read=visible,
        tie_breaker=not suspended,
        protocol="C",
        shared_secret=datamesh.shared_secret,
        shared_secret_alg=_algorithm(datamesh.shared_secret_alg),
        paths=tuple(
            PeerPath(system_network_name=address.system_network_name, address=address.address)
            for address in other.addresses
        ),
    )


def _algorithm(name: str) -> SharedSecretAlg:
    """The algorithm as the resource's spec knows it; an unknown one is left to DRBD's default."""
    match name:
        case "SHA256" | "SHA1" | "DummyForTest":
            return name
        case _:
            return ""

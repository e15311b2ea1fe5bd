"""Guards of replicas that become members or get a disk (facts/datamesh 3.3: G1-G7, G11; seed 000, join guards)."""

from __future__ import annotations

from quorate.api.common import MAX_DISK_MEMBERS
from quorate.api.replicated_volume import DatameshTransition, MemberType, TransitionType
from quorate.datamesh import ids
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Block, guard
from quorate.datamesh.members import id_of
from quorate.datamesh.steps import addresses_on


@guard("G1")
def volume_not_deleting(context: Context) -> Block | None:
    """A volume that goes away takes no new members."""
    if context.world.deleting:
        return Block("Will not join datamesh: volume is being deleted", sentence=True)
    return None


@guard("G7")
def access_allowed(context: Context) -> Block | None:
    """With volumeAccess Local nobody reads over the network, so there are no Access members."""
    if context.world.configuration.volume_access == "Local":
        return Block("Will not join datamesh: volumeAccess is Local", sentence=True)
    return None


@guard("G7-change")
def access_role_allowed(context: Context) -> Block | None:
    """The same for a member that wants to become Access."""
    if context.world.configuration.volume_access == "Local":
        return Block("volumeAccess is Local, Access members are not allowed")
    return None


@guard("G6")
def addresses_known(context: Context) -> Block | None:
    """Peers must know where to connect: an address on every system network of the datamesh."""
    rvr = context.replica.rvr
    networks = context.mesh.datamesh.system_network_names
    if rvr is None or len(addresses_on(networks, rvr.status.addresses)) < max(len(networks), 1):
        return Block("Waiting for replica addresses to be populated", sentence=True)
    return None


@guard("G5")
def node_is_free(context: Context) -> Block | None:
    """At most one member per node (S40)."""
    node_name = context.replica.node_name
    for member in context.mesh.datamesh.members:
        if member.node_name == node_name and member.name != context.replica.name:
            return Block(
                f"Will not join datamesh: {member.type} member {member.name} is already on node {node_name}",
                sentence=True,
            )
    return None


@guard("G2")
def pool_known(context: Context) -> Block | None:
    """Eligibility and zones come from the pool."""
    if context.world.pool is None:
        return Block("Waiting for ReplicatedStoragePool to be available", sentence=True)
    return None


@guard("G3")
def node_eligible(context: Context) -> Block | None:
    """The pool must allow the node."""
    node_name = context.replica.node_name
    if node_name not in context.world.eligible_nodes:
        return Block(
            f"Will not join datamesh: node {node_name} is not eligible for pool "
            f"{context.world.configuration.replicated_storage_pool_name}",
            sentence=True,
        )
    return None


def gains_disk(transition: DatameshTransition) -> bool:
    """Whether a transition ends with a disk that its subject did not have: AddReplica or ChangeReplicaType to D."""
    return (transition.type == TransitionType.ADD_REPLICA and transition.replica_type == MemberType.DISKFUL) or (
        transition.type == TransitionType.CHANGE_REPLICA_TYPE
        and transition.to_replica_type == MemberType.DISKFUL
        and transition.from_replica_type != MemberType.DISKFUL
    )


@guard("G11")
def disk_slot_free(context: Context) -> Block | None:
    """DRBD metadata has seven bitmap slots, so at most eight members may carry a disk (S21)."""
    present = context.mesh.full_mesh & ~context.subject_bit
    pending = 0
    for transition in context.transitions:
        if transition.replica_name and gains_disk(transition):
            pending |= 1 << id_of(transition.replica_name)
    pending &= ~present & ~context.subject_bit
    if ids.count(present | pending) >= MAX_DISK_MEMBERS:
        return Block(
            f"at most {MAX_DISK_MEMBERS} members may carry a disk ({ids.count(present)} do, {ids.count(pending)} pending)"
        )
    return None


@guard("LVG")
def volume_group_known(context: Context) -> Block | None:
    """A disk needs its volume group in the transition before the first step (S17, E15)."""
    transition = context.transition
    if transition is None or not transition.lvm_volume_group_name:
        return Block("waiting for a volume group to be assigned")
    return None


COMMON = (volume_not_deleting, pool_known, node_eligible, node_is_free, addresses_known)
"""Guards of every join except Access, whose order is the seed's (facts/datamesh 3.5)."""

ACCESS = (volume_not_deleting, access_allowed, addresses_known, node_is_free, pool_known, node_eligible)
"""Join guards 2-8 of ensureDatameshAddReplica, in the seed's order."""

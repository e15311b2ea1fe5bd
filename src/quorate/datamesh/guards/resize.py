"""Guards of a resize (G40-G42, S22)."""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.common import ReplicationState
from quorate.api.replicated_volume_replica import ReadyCondition
from quorate.api.sizes import align_4ki, lower_size
from quorate.datamesh import ids
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Block, guard


@guard("G40")
def some_disk_ready(context: Context) -> Block | None:
    """Somebody with a disk must be ready to carry the resize out."""
    for replica_id in ids.iterate(context.mesh.disks):
        rvr = context.world.replicas[replica_id].rvr
        if rvr is not None and conditions.is_true(rvr.status.conditions, ReadyCondition.TYPE):
            return None
    return Block("no diskful replica is Ready")


@guard("G41")
def nothing_synchronises(context: Context) -> Block | None:
    """DRBD refuses to resize during a resync."""
    for replica_id in ids.iterate(context.mesh.disks):
        rvr = context.world.replicas[replica_id].rvr
        for peer in () if rvr is None else rvr.status.peers:
            if peer.replication_state in ReplicationState.SYNCING:
                return Block(f"replica #{replica_id} is synchronising with {peer.name} ({peer.replication_state})")
    return None


@guard("G42")
def lower_volumes_fit(context: Context) -> Block | None:
    """Every disk member's lower volume must already hold the new size; replicas grow them eagerly."""
    wanted = lower_size(align_4ki(context.world.volume.spec.size.value))
    for replica_id in ids.iterate(context.mesh.full_mesh):
        rvr = context.world.replicas[replica_id].rvr
        backing = None if rvr is None else rvr.status.backing_volume
        if backing is None or backing.size is None:
            return Block(f"the size of the backing volume of #{replica_id} is unknown")
        if backing.size.value < wanted:
            return Block(f"the backing volume of #{replica_id} has {backing.size.value} bytes, {wanted} are needed")
    return None

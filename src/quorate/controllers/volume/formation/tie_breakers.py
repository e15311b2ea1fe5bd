"""Tie-breakers at formation: the same question as in the engine's guards, asked while there are no transitions yet."""

from __future__ import annotations

from quorate.api.replicated_volume import MemberType, ReplicatedVolumeStatus
from quorate.api.value import replace
from quorate.controllers.volume.snapshot import Snapshot
from quorate.datamesh import ids, tie_breakers
from quorate.datamesh.context import Context, mesh_of, world_of
from quorate.datamesh.contract import PassInput
from quorate.datamesh.engine import DEFAULT_REGISTRY


def find_not_operational(snapshot: Snapshot, status: ReplicatedVolumeStatus, now: float) -> str:
    """What the tie-breakers lack, for the step's message; empty when all are operational (S27)."""
    if not any(member.type == MemberType.TIE_BREAKER for member in status.datamesh.members):
        return ""
    configuration = status.configuration
    assert configuration is not None
    volume = replace(snapshot.existing_volume(), status=status)
    inputs = PassInput(volume=volume, replicas=snapshot.replicas, pool=snapshot.pool, now=now)
    mesh = mesh_of(status.datamesh, status.datamesh_revision)
    context = Context(world=world_of(inputs, configuration, {}), mesh=mesh, transitions=(), registry=DEFAULT_REGISTRY)
    lacking = tuple(
        f"#{number} {why}"
        for number in ids.iterate(mesh.tie_breakers)
        if (why := tie_breakers.why_not_operational(context, number))
    )
    return f"Waiting for tie-breakers: {', '.join(lacking)}" if lacking else ""

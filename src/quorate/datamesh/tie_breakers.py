"""Tie-breakers: when one is operational and how many are needed (S24, S25)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.api import conditions
from quorate.api.replicated_volume_replica import DRBDConfiguredCondition
from quorate.datamesh import ids

if TYPE_CHECKING:
    from quorate.datamesh.context import Context


def needed(voters: int, ftt: int) -> int:
    """Tie-breakers without which `voters` cannot survive `ftt` failures: one iff a halving must be survived.

    For the seven layouts this is `layout.tie_breakers`; on the way between them (two voters, FTT 2) it also keeps the
    tie-breaker that is worth a failure.
    """
    return 1 if voters > 0 and voters % 2 == 0 and ftt >= voters // 2 else 0


def why_not_operational(context: Context, replica_id: int) -> str:
    """Empty when a tie-breaker counts, else what it lacks. The one function for guards and formation (facts 3.3).

    It must exist, stay, have confirmed the current revision, be configured, and every connection to a full-mesh member must
    be verified. Ready, quorum and a backing volume are not required. With any diskful member down no tie-breaker counts:
    deliberate (hazard H28).
    """
    replica = context.world.replicas.get(replica_id)
    if replica is None or replica.rvr is None:
        return "replica not found"
    if replica.deleting:
        return "is being deleted"
    if replica.revision < context.mesh.revision:
        return f"has not confirmed revision {context.mesh.revision}"
    configured = conditions.get(replica.rvr.status.conditions, DRBDConfiguredCondition.TYPE)
    if (
        configured is None
        or configured.status != "True"
        or configured.observed_generation != replica.rvr.metadata.generation
    ):
        return "is not configured"
    missing = context.unverified_peers(replica_id, context.mesh.revision, context.mesh.full_mesh)
    return f"is not connected to [{ids.text(missing)}]" if missing else ""


def operational(context: Context, among: int) -> int:
    """The tie-breakers of a set that count."""
    return ids.mask_of(i for i in ids.iterate(among) if not why_not_operational(context, i))

"""Protection: what is committed and what is observed (decision 2, facts/datamesh 5.6).

* *Committed* (`effectiveLayout`, baseline): what the published configuration guarantees once everything is up. It falls with
  the revision that lowers it and rises only when everybody has confirmed the raise (S13); it never exceeds the
  configuration.
* *Observed* (`observedProtection`): how many further failures would be survived at this moment, by the exact formula.
"""

from __future__ import annotations

from quorate.api.replicated_volume import EffectiveLayout, ObservedProtection, TransitionGroup
from quorate.datamesh import ids
from quorate.datamesh.state import State

_MOVING = (
    TransitionGroup.VOTING_MEMBERSHIP,
    TransitionGroup.NON_VOTING_MEMBERSHIP,
    TransitionGroup.QUORUM,
    TransitionGroup.EMERGENCY,
)


def compute_baseline(state: State, stored: int) -> int:
    """The GMDR that holds for certain: `min(qmr - 1, configured GMDR)`, rising only after confirmation (S13)."""
    qmr = state.mesh.datamesh.quorum_minimum_redundancy
    candidate = max(min(qmr - 1, state.world.layout.gmdr), 0)
    if candidate > stored and any(t.group == TransitionGroup.QUORUM for t in state.transitions):
        return stored
    return candidate


def compute_committed(state: State, stored: EffectiveLayout, baseline: int) -> EffectiveLayout:
    """The committed level. FTT falls at once; it rises when nothing moves and every copy is UpToDate."""
    mesh = state.mesh
    breakers = 0 if mesh.datamesh.tie_breakers_suspended else ids.count(mesh.tie_breakers)
    bonus = 1 if mesh.voter_count % 2 == 0 and breakers else 0
    copies = ids.count(mesh.voters & mesh.disks)
    structural = min(
        mesh.voter_count - mesh.datamesh.quorum + bonus,
        copies - mesh.datamesh.quorum_minimum_redundancy,
        state.world.layout.ftt,
    )
    candidate = max(structural, 0)
    before = stored.failures_to_tolerate
    if before is not None and candidate > before:
        moving = any(t.group in _MOVING for t in state.transitions)
        if moving or ids.count(state.context().up_to_date) < copies:
            candidate = before
    new = EffectiveLayout(failures_to_tolerate=candidate, guaranteed_minimum_data_redundancy=baseline)
    return stored if new == stored else new


def compute_observed(state: State) -> ObservedProtection:
    """The observed level: exact in all states of the model (facts/datamesh 5.6, hazard H9)."""
    mesh, replicas = state.mesh, state.world.replicas
    ready = quorate = up_to_date = peer_connected = peer_up_to_date = stale = 0
    for replica_id in mesh.by_id:
        replica = replicas[replica_id]
        if replica.rvr is None:
            continue
        if not replica.agent_ready or replica.quorum is None:
            stale |= 1 << replica_id
            continue
        ready |= 1 << replica_id
        quorate |= (1 << replica_id) if replica.quorum else 0
        up_to_date |= (1 << replica_id) if replica.up_to_date else 0
        peer_connected |= replica.connected
        peer_up_to_date |= replica.peers_up_to_date
    known = ids.mask_of(i for i in mesh.by_id if replicas[i].rvr is not None)
    voters, breakers = mesh.voters & known, mesh.tie_breakers & known
    reachable = (voters & quorate) | (voters & ~ready & peer_connected)
    copies = (voters & up_to_date) | (voters & ~ready & peer_up_to_date)
    reachable_breakers = breakers & (ready | peer_connected)
    ftt = gmdr = None
    if mesh.voters and ready:
        total_breakers = ids.count(mesh.tie_breakers)
        tie = mesh.voter_count % 2 == 0 and ids.count(reachable_breakers) >= total_breakers // 2 + 1
        bonus = 1 if tie and not mesh.datamesh.tie_breakers_suspended else 0
        qmr = mesh.datamesh.quorum_minimum_redundancy
        ftt = min(ids.count(reachable) - mesh.datamesh.quorum + bonus, ids.count(copies) - qmr)
        gmdr = min(ids.count(copies), qmr) - 1
    return ObservedProtection(
        failures_to_tolerate=ftt,
        guaranteed_minimum_data_redundancy=gmdr,
        total_voters=mesh.voter_count,
        reachable_voters=ids.count(reachable),
        up_to_date_voters=ids.count(copies),
        total_tie_breakers=ids.count(mesh.tie_breakers),
        reachable_tie_breakers=ids.count(reachable_breakers),
        stale_agents=ids.count(stale),
        message=_summary(state, reachable, copies, reachable_breakers, stale),
    )


def _summary(state: State, reachable: int, copies: int, breakers: int, stale: int) -> str:
    mesh = state.mesh
    text = (
        f"{ids.count(reachable)}/{mesh.voter_count} voters reachable, {ids.count(copies)} UpToDate "
        f"(q {mesh.datamesh.quorum}, qmr {mesh.datamesh.quorum_minimum_redundancy})"
    )
    if mesh.tie_breakers:
        suspended = ", votes suspended" if mesh.datamesh.tie_breakers_suspended else ""
        text += f", {ids.count(breakers)}/{ids.count(mesh.tie_breakers)} tie-breakers reachable{suspended}"
    return f"{text}, agent not ready on [{ids.text(stale)}]" if stale else text

"""One pass of the datamesh engine: a pure function from what is known to the next status (facts/datamesh 5.2).

    requests -> contexts -> zones -> ( turn -> settle -> network -> quorum -> membership -> attachment -> resize )* -> status

Guarantees: same inputs, same outputs; a second pass without new input returns the very same status object (E5); no state is
kept outside the status, so a pass resumes wherever the last write left off (E10). At most ten rounds (E6). While a volume is
forming the engine creates nothing (E13).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.api.replicated_volume import MembershipLayoutConvergedCondition
from quorate.api.replicated_volume_attachment import AttachedCondition
from quorate.api.times import format as format_time
from quorate.api.value import replace
from quorate.datamesh import effective, ids, messages
from quorate.datamesh.context import Mesh, World, mesh_of, world_of
from quorate.datamesh.contract import Convergence, NodeAttachment, PassInput, PassResult
from quorate.datamesh.convergence import compute_convergence
from quorate.datamesh.default_registry import DEFAULT_REGISTRY
from quorate.datamesh.layout import layout_name
from quorate.datamesh.members import id_of
from quorate.datamesh.planners import attachment, membership, network, quorum, resize
from quorate.datamesh.plans.formation_records import is_forming
from quorate.datamesh.requests import sync_requests, with_messages
from quorate.datamesh.settle import settle
from quorate.datamesh.state import Report, State

if TYPE_CHECKING:
    from quorate.api.replicated_volume import DatameshReplicaRequest, ReplicatedVolumeStatus
    from quorate.datamesh.registry import Registry

__all__ = ["DEFAULT_REGISTRY", "PassInput", "PassResult", "run_pass"]

MAX_ROUNDS = 10

DISPATCHERS = (network.dispatch, quorum.dispatch, membership.dispatch, attachment.dispatch, resize.dispatch)
"""In this order (facts/datamesh 4.3); each sees what the ones before it published."""


def run_pass(inputs: PassInput, registry: Registry = DEFAULT_REGISTRY) -> PassResult:
    """The next status of a volume, what its attachments are told, and how its replicas should change."""
    status = inputs.volume.status
    now = format_time(inputs.now)
    requests = sync_requests(status.datamesh_replica_requests, inputs.replicas, now)
    configuration = status.configuration
    if configuration is None or is_forming(status):
        return _standing_still(inputs, requests)
    world = world_of(inputs, configuration, {id_of(entry.name): entry.request for entry in requests}, now)
    mesh = _with_zones(world, mesh_of(status.datamesh, status.datamesh_revision))
    report = Report()
    state = _decide(State(world, registry, mesh, status.datamesh_transitions), report)
    convergence, actions = compute_convergence(state, requests, report)
    new = _written(status, state, with_messages(requests, report.membership))
    return PassResult(
        status=new,
        attachments=_node_attachments(state, report),
        actions=actions,
        convergence=convergence,
        notes=tuple(report.volume[name] for name in sorted(report.volume)),
        changed=new is not status,
    )


def _decide(state: State, report: Report) -> State:
    """Turn round what nobody wants any more, settle what runs, start what is due, until nothing new starts."""
    for _ in range(MAX_ROUNDS):
        state = settle(membership.turn(state, report), report)
        before = state.transitions
        for dispatch in DISPATCHERS:
            state = dispatch(state, report)
        if state.transitions is before:
            return state
    return state


def _with_zones(world: World, mesh: Mesh) -> Mesh:
    """Members follow the pool's zones; no revision is spent, no node needs to know (facts/datamesh 5.2)."""
    eligible = world.eligible_nodes
    changed = False
    refreshed = list(mesh.datamesh.members)
    for index, member in enumerate(refreshed):
        node = eligible.get(member.node_name)
        if node is not None and node.zone_name != member.zone:
            refreshed[index] = replace(member, zone=node.zone_name)
            changed = True
    return mesh_of(replace(mesh.datamesh, members=tuple(refreshed)), mesh.revision) if changed else mesh


def _written(
    status: ReplicatedVolumeStatus, state: State, requests: tuple[DatameshReplicaRequest, ...]
) -> ReplicatedVolumeStatus:
    """The status with everything the engine owns; the same object when nothing differs (5.5)."""
    baseline = effective.compute_baseline(state, status.baseline_guaranteed_minimum_data_redundancy)
    observed = effective.compute_observed(state)
    new = replace(
        status,
        datamesh_revision=state.mesh.revision,
        datamesh=state.mesh.datamesh,
        datamesh_transitions=state.transitions,
        datamesh_replica_requests=requests,
        membership_layout=_membership_layout(state.mesh),
        baseline_guaranteed_minimum_data_redundancy=baseline,
        effective_layout=effective.compute_committed(state, status.effective_layout, baseline),
        observed_protection=status.observed_protection if observed == status.observed_protection else observed,
    )
    return status if new == status else new


def _membership_layout(mesh: Mesh) -> str:
    if not mesh.voters:
        return ""
    return layout_name(mesh.voter_count, ids.count(mesh.tie_breakers))


def _node_attachments(state: State, report: Report) -> tuple[NodeAttachment, ...]:
    found: list[NodeAttachment] = []
    for node in state.world.attachments:
        reason, message = report.attachment.get(node, (AttachedCondition.PENDING, "Waiting for the datamesh"))
        found.append(
            NodeAttachment(
                node_name=node, reason=reason, message=message, attached=reason == AttachedCondition.ATTACHED
            )
        )
    return tuple(found)


def _standing_still(inputs: PassInput, requests: tuple[DatameshReplicaRequest, ...]) -> PassResult:
    """Forming, or without configuration: only the requests are kept in step (E13)."""
    status = inputs.volume.status
    same = requests is status.datamesh_replica_requests
    new = status if same else replace(status, datamesh_replica_requests=requests)
    nodes = sorted(dict.fromkeys(attachment.spec.node_name for attachment in inputs.attachments))
    reason = AttachedCondition.WAITING_FOR_REPLICATED_VOLUME
    return PassResult(
        status=new,
        attachments=tuple(NodeAttachment(node_name=n, reason=reason, message=messages.FORMING) for n in nodes),
        actions=(),
        convergence=Convergence(
            status="False",
            reason=MembershipLayoutConvergedCondition.CONVERGING,
            message=messages.FORMING,
        ),
        changed=new is not status,
    )

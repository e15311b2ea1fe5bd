"""The cluster on one screen: nodes, pools, volumes, attachments, transitions, and what needs attention first.

One dead node makes many volumes worse: those are told once, at the node. The attention list is sorted by how bad it is.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import conditions
from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.node import Node
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import DatameshTransition, IOReadyCondition, MemberType, ReplicatedVolume, StepStatus
from quorate.api.replicated_volume_attachment import ReadyCondition
from quorate.datamesh.layout import is_valid, layout_of
from quorate.explain.attachments import explain_attachment
from quorate.explain.causes import BLOCKED, DEGRADED, DELETING, HEALTHY, WORKING, Cause, Explanation, listed
from quorate.explain.nodes import node_cause, sync_source
from quorate.explain.survival import is_formed
from quorate.explain.view import ClusterView, agent_ready, fencing_evidence, is_ready, zone_of
from quorate.explain.volumes import active_step, explain_volume

LOW_SPACE = 0.1
"""Share of free space below which a pool needs attention."""


@dataclass(frozen=True)
class NodeLine:
    """A node."""

    name: str
    zone: str
    ready: bool
    agent_ready: bool | None
    """None when no pool has the node."""
    cordoned: bool
    fenced: bool
    replicas: str
    """`2D 1TB`."""
    attached: int


@dataclass(frozen=True)
class PoolLine:
    """A pool with its capacity."""

    name: str
    type: str
    phase: str
    nodes: int
    """Eligible nodes."""
    size: int
    free: int
    classes: tuple[str, ...]


@dataclass(frozen=True)
class Protection:
    """FTT and GMDR; None = not known."""

    ftt: int | None
    gmdr: int | None


@dataclass(frozen=True)
class VolumeLine:
    """A volume."""

    name: str
    storage_class: str
    """Empty in Manual mode."""
    size: int
    layout: str
    wanted_layout: str
    """FTT and GMDR of the configuration, as a layout."""
    promised: Protection
    observed: Protection
    state: str
    attached_on: tuple[str, ...]
    nodes: tuple[str, ...]
    message: str


@dataclass(frozen=True)
class AttachmentLine:
    """An attachment."""

    name: str
    volume: str
    node: str
    phase: str
    device: str
    in_use: bool
    message: str


@dataclass(frozen=True)
class TransitionLine:
    """A change under way, or a copy that is being brought up to date."""

    volume: str
    type: str
    replica: str
    step: str
    position: int
    steps: int
    progress: float
    """0 to 1."""
    since: str
    message: str


@dataclass(frozen=True)
class Attention:
    """Something that a person should look at."""

    level: str
    """`blocked`, `degraded` or `working`."""
    subject: str
    text: str
    since: str
    remedy: str


@dataclass(frozen=True)
class Overview:
    """The cluster on one screen."""

    nodes: tuple[NodeLine, ...]
    pools: tuple[PoolLine, ...]
    volumes: tuple[VolumeLine, ...]
    attachments: tuple[AttachmentLine, ...]
    transitions: tuple[TransitionLine, ...]
    attention: tuple[Attention, ...]


def compute_overview(view: ClusterView) -> Overview:
    """Everything `quorate status` shows."""
    explanations = {volume.metadata.name: explain_volume(view, volume, briefly=True) for volume in view.volumes}
    return Overview(
        nodes=tuple(_node(view, node) for node in view.nodes),
        pools=tuple(_pool(view, pool) for pool in view.pools),
        volumes=tuple(_volume(volume, explanations[volume.metadata.name]) for volume in view.volumes),
        attachments=_attachments(view),
        transitions=tuple(line for volume in view.volumes for line in _changes(view, volume)),
        attention=_attention(view, explanations),
    )


def _node(view: ClusterView, node: Node) -> NodeLine:
    name = node.metadata.name
    counts: dict[str, int] = {MemberType.DISKFUL: 0, MemberType.TIE_BREAKER: 0, MemberType.ACCESS: 0}
    attached = 0
    for volume in view.volumes:
        for member in volume.status.datamesh.members:
            if member.node_name == name:
                kind = MemberType.DISKFUL if member.type == MemberType.LIMINAL_DISKFUL else member.type
                counts[kind] = counts.get(kind, 0) + 1
                attached += member.attached
    short = {MemberType.DISKFUL: "D", MemberType.TIE_BREAKER: "TB", MemberType.ACCESS: "A"}
    return NodeLine(
        name=name,
        zone=zone_of(node),
        ready=is_ready(node),
        agent_ready=agent_ready(view, name),
        cordoned=node.spec.unschedulable,
        fenced=bool(fencing_evidence(node)),
        replicas=" ".join(f"{count}{short.get(kind, kind)}" for kind, count in counts.items() if count),
        attached=attached,
    )


def _pool(view: ClusterView, pool: ReplicatedStoragePool) -> PoolLine:
    size = free = 0
    for reference in pool.spec.lvm_volume_groups:
        group = view.group(reference.name)
        if group is not None:
            added, left = capacity_of(group, reference.thin_pool_name)
            size, free = size + added, free + left
    return PoolLine(
        name=pool.metadata.name,
        type=pool.spec.type,
        phase=pool.status.phase,
        nodes=len(pool.status.eligible_nodes),
        size=size,
        free=free,
        classes=pool.status.used_by.replicated_storage_class_names,
    )


def capacity_of(group: LVMVolumeGroup, thin_pool: str) -> tuple[int, int]:
    """Size and free bytes of a volume group, or of a thin pool in it (what is really used there, not promised)."""
    status = group.status
    if not thin_pool:
        return (status.vg_size.value if status.vg_size else 0), (status.vg_free.value if status.vg_free else 0)
    found = next((pool for pool in status.thin_pools if pool.name == thin_pool), None)
    size = found.actual_size.value if found is not None and found.actual_size is not None else 0
    used = found.used_size.value if found is not None and found.used_size is not None else 0
    return size, max(size - used, 0)


def _volume(volume: ReplicatedVolume, explanation: Explanation) -> VolumeLine:
    status = volume.status
    promised, observed = status.effective_layout, status.observed_protection
    formed = is_formed(volume)
    members = status.datamesh.members
    return VolumeLine(
        name=volume.metadata.name,
        storage_class=volume.spec.replicated_storage_class_name,
        size=(status.size or volume.spec.size).value,
        layout=status.membership_layout,
        wanted_layout=_wanted(volume),
        promised=Protection(promised.failures_to_tolerate, promised.guaranteed_minimum_data_redundancy),
        observed=(
            Protection(observed.failures_to_tolerate, observed.guaranteed_minimum_data_redundancy)
            if observed is not None and formed
            else Protection(None, None)
        ),
        state=state_of(volume, explanation),
        attached_on=tuple(member.node_name for member in members if member.attached),
        nodes=tuple(member.node_name for member in members),
        message="" if explanation.verdict == HEALTHY else explanation.summary,
    )


def _wanted(volume: ReplicatedVolume) -> str:
    configuration = volume.status.configuration or volume.spec.manual_configuration
    if configuration is None:
        return ""
    ftt, gmdr = configuration.failures_to_tolerate, configuration.guaranteed_minimum_data_redundancy
    return str(layout_of(ftt, gmdr)) if is_valid(ftt, gmdr) else ""


def state_of(volume: ReplicatedVolume, explanation: Explanation) -> str:
    """The volume in one word."""
    if explanation.verdict == DELETING:
        return "Deleting"
    if not is_formed(volume):
        return "Forming" if volume.status.configuration is not None else "Waiting"
    io = conditions.get(volume.status.conditions, IOReadyCondition.TYPE)
    if io is not None and io.status == conditions.FALSE:
        return "Frozen" if io.reason == IOReadyCondition.IO_SUSPENDED else "NoQuorum"
    match explanation.verdict:
        case "blocked":
            return "Blocked"
        case "degraded":
            return "Degraded"
        case "working":
            return "Changing"
        case _:
            return "Healthy"


def _attachments(view: ClusterView) -> tuple[AttachmentLine, ...]:
    return tuple(
        AttachmentLine(
            name=attachment.metadata.name,
            volume=attachment.spec.replicated_volume_name,
            node=attachment.spec.node_name,
            phase=attachment.status.phase,
            device=attachment.status.device_path,
            in_use=bool(attachment.status.in_use),
            message=attachment.status.message
            if not conditions.is_true(attachment.status.conditions, ReadyCondition.TYPE)
            else "",
        )
        for attachment in view.attachments
    )


def _changes(view: ClusterView, volume: ReplicatedVolume) -> tuple[TransitionLine, ...]:
    name = volume.metadata.name
    running = tuple(_transition(volume, transition) for transition in volume.status.datamesh_transitions)
    copying: list[TransitionLine] = []
    for replica in view.replicas_of(name):
        source = sync_source(replica)
        peer = next((peer for peer in replica.status.peers if peer.name == source), None)
        if peer is not None:
            done = _number(peer.sync_progress) / 100
            line = TransitionLine(
                name,
                "Synchronise",
                replica.metadata.name,
                f"from {source}",
                1,
                1,
                done,
                "",
                f"{peer.sync_progress or '0'} %",
            )
            copying.append(line)
    return (*running, *copying)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 0.0


def _transition(volume: ReplicatedVolume, transition: DatameshTransition) -> TransitionLine:
    step = active_step(transition)
    position = transition.steps.index(step) + 1 if step is not None else len(transition.steps)
    done = sum(each.status == StepStatus.COMPLETED for each in transition.steps)
    return TransitionLine(
        volume=volume.metadata.name,
        type=transition.type,
        replica=transition.replica_name,
        step=step.name if step is not None else "",
        position=position,
        steps=len(transition.steps),
        progress=(done + _confirmed(step.message if step is not None else "")) / max(len(transition.steps), 1),
        since=step.started_at if step is not None else "",
        message=transition.message or (step.message if step is not None else ""),
    )


def _confirmed(message: str) -> float:
    """The share that `2/3 replicas confirmed` stands for; 0 without such a text."""
    head = message.partition(" replicas confirmed")[0].split(" ")[-1]
    part, _, whole = head.partition("/")
    if not (part.isdigit() and whole.isdigit() and int(whole)):
        return 0.0
    return int(part) / int(whole)


# Attention


def _attention(view: ClusterView, explanations: dict[str, Explanation]) -> tuple[Attention, ...]:
    found = [*_nodes_attention(view), *_class_attention(view), *_pool_attention(view), *_attachment_attention(view)]
    for name, explanation in explanations.items():
        if explanation.verdict not in (BLOCKED, DEGRADED):
            continue
        if explanation.verdict == DEGRADED and all(_is_node_trouble(cause) for cause in explanation.causes):
            continue  # told once, at the node
        top = explanation.causes[0]
        remedy = next((cause.remedy for _, cause in top.walk() if cause.remedy), "")
        found.append(
            Attention(
                explanation.verdict, f"volume {name}", top.text, top.since, remedy or f"quorate explain volume {name}"
            )
        )
    rank = {BLOCKED: 0, DEGRADED: 1, WORKING: 2}
    return tuple(sorted(found, key=lambda item: (rank[item.level], item.subject)))


def _is_node_trouble(cause: Cause) -> bool:
    """Whether a cause rests on nodes alone."""
    leaves = [found for _, found in cause.walk() if not found.because]
    return all(leaf.subject.startswith("node ") for leaf in leaves)


def _nodes_attention(view: ClusterView) -> tuple[Attention, ...]:
    found: list[Attention] = []
    for node in view.nodes:
        name = node.metadata.name
        cause = node_cause(view, name)
        if cause is None:
            continue
        hosted = tuple(
            v.metadata.name for v in view.volumes if any(m.node_name == name for m in v.status.datamesh.members)
        )
        some = f": {listed(hosted)}" if 0 < len(hosted) <= 3 else ""
        count = "1 volume misses it" if len(hosted) == 1 else f"{len(hosted)} volumes miss it"
        text = f"{cause.text}; {count}{some}"
        found.append(Attention(DEGRADED, f"node {name}", text, cause.since, cause.remedy))
    return tuple(found)


def _class_attention(view: ClusterView) -> tuple[Attention, ...]:
    found: list[Attention] = []
    for each in view.classes:
        ready = conditions.get(each.status.conditions, "Ready")
        if ready is not None and ready.status == conditions.FALSE:
            name = each.metadata.name
            text = ready.message or ready.reason
            found.append(
                Attention(BLOCKED, f"class {name}", text, ready.last_transition_time, f"kubectl describe rsc {name}")
            )
    return tuple(found)


def _pool_attention(view: ClusterView) -> tuple[Attention, ...]:
    found: list[Attention] = []
    for pool in view.pools:
        line = _pool(view, pool)
        if line.size and line.free < LOW_SPACE * line.size:
            text = f"{line.free * 100 // line.size} % of the space is left"
            found.append(Attention(DEGRADED, f"pool {line.name}", text, "", "add disks or nodes, or delete volumes"))
    return tuple(found)


def _attachment_attention(view: ClusterView) -> tuple[Attention, ...]:
    found: list[Attention] = []
    for attachment in view.attachments:
        explanation = explain_attachment(view, attachment)
        if explanation.verdict == BLOCKED and explanation.causes:
            top = explanation.causes[0]
            name = attachment.metadata.name
            remedy = top.remedy or f"quorate explain attachment {name}"
            found.append(Attention(BLOCKED, f"attachment {name}", top.text, top.since, remedy))
    return tuple(found)

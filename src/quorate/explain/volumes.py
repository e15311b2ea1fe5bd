"""Explaining volumes: from the condition that is not as wished down to the node, guard or person it waits for."""

from __future__ import annotations

from quorate.api import conditions, labels
from quorate.api.meta import Condition
from quorate.api.replicated_volume import (
    ConfigurationReadyCondition,
    DatameshTransition,
    DatameshTransitionStep,
    IOReadyCondition,
    MembershipLayoutConvergedCondition,
    ReplicatedVolume,
    SatisfyEligibleNodesCondition,
    ScheduledCondition,
    StepStatus,
    TransitionType,
)
from quorate.datamesh import members
from quorate.datamesh.guards.emergency import WAITING_FOR_FENCING
from quorate.datamesh.layout import is_valid, layout_of
from quorate.explain.causes import BLOCKED, DEGRADED, DELETING, HEALTHY, WORKING, Cause, Explanation, listed
from quorate.explain.nodes import node_cause
from quorate.explain.replicas import missing_members, replica_causes
from quorate.explain.survival import Survival, is_formed, serves_io, survival_of
from quorate.explain.view import ClusterView

Found = tuple[str, Cause]
"""A cause with its verdict."""


def explain_volume(view: ClusterView, volume: ReplicatedVolume, *, briefly: bool = False) -> Explanation:
    """The causal chain of a volume, or what keeps it healthy; `briefly` leaves out which losses it survives."""
    name = volume.metadata.name
    found = volume_causes(view, volume)
    order = (DELETING, BLOCKED, DEGRADED, WORKING)
    verdict = next((candidate for candidate in order if any(v == candidate for v, _ in found)), HEALTHY)
    survives = () if briefly else _survival_lines(view, volume)
    healthy = _keeps_healthy(view, volume) if verdict in (HEALTHY, WORKING) and is_formed(volume) else ()
    main = next((cause.text for v, cause in found if v == verdict), "")
    summary = f"{describe(volume)}: {main or 'healthy'}"
    return Explanation(
        kind="volume",
        name=name,
        verdict=verdict,
        summary=summary,
        causes=tuple(cause for _, cause in found),
        keeps_healthy=healthy,
        survives=survives,
    )


def volume_causes(view: ClusterView, volume: ReplicatedVolume) -> tuple[Found, ...]:
    """Everything that is not as wished, worst first."""
    if volume.metadata.deleting:
        return ((DELETING, _deleting(view, volume)),)
    found: list[Found] = []
    found.extend(_configuration(view, volume))
    if volume.status.configuration is not None and not is_formed(volume):
        found.append(_forming(view, volume))
    elif is_formed(volume):
        found.extend(_io(view, volume))
        found.extend(_protection(view, volume))
        found.extend(_convergence(view, volume))
        found.extend(_transitions(view, volume))
        found.extend(_placement(view, volume))
    rank = {BLOCKED: 0, DEGRADED: 1, WORKING: 2}
    return tuple(sorted(found, key=lambda entry: rank.get(entry[0], 3)))


def describe(volume: ReplicatedVolume) -> str:
    """`3D, FTT 1, GMDR 1` as configured; what is known of it."""
    configuration = volume.status.configuration or volume.spec.manual_configuration
    if configuration is None:
        return "no configuration yet"
    ftt, gmdr = configuration.failures_to_tolerate, configuration.guaranteed_minimum_data_redundancy
    layout = str(layout_of(ftt, gmdr)) if is_valid(ftt, gmdr) else "no layout"
    return f"{layout} (FTT {ftt}, GMDR {gmdr})"


def _reason(condition: Condition) -> str:
    return f"{condition.type}={condition.status}/{condition.reason}"


# Deletion


def _deleting(view: ClusterView, volume: ReplicatedVolume) -> Cause:
    name = volume.metadata.name
    foreign = tuple(f for f in volume.metadata.finalizers if f != labels.FINALIZER_VOLUME)
    because = [_foreign_finalizer(name, finalizer) for finalizer in foreign]
    because.extend(
        _still_attached(view, volume, member.name, member.node_name)
        for member in volume.status.datamesh.members
        if member.attached
    )
    for replica in view.replicas_of(name):
        if not because and (node := node_cause(view, replica.spec.node_name)) is not None:
            text = "its data cannot be removed while its node does not answer"
            because.append(Cause(f"replica {replica.metadata.name}", text, because=(node,)))
    return Cause(
        f"volume {name}",
        "it is being deleted",
        reason="deletionTimestamp",
        since=volume.metadata.deletion_timestamp,
        actor="the volume controller",
        because=tuple(because),
    )


def _foreign_finalizer(name: str, finalizer: str) -> Cause:
    csi = finalizer == labels.FINALIZER_CSI
    return Cause(
        f"volume {name}",
        f"finalizer {finalizer} is not ours to remove",
        reason="finalizer",
        actor="the CSI driver" if csi else "whoever set it",
        remedy="" if csi else "remove it when its owner is certainly gone",
    )


def _still_attached(view: ClusterView, volume: ReplicatedVolume, replica_name: str, node: str) -> Cause:
    replica = view.replica(replica_name)
    in_use = replica is not None and replica.status.attachment is not None and replica.status.attachment.in_use
    wishes = tuple(a.metadata.name for a in view.attachments_of(volume.metadata.name) if a.spec.node_name == node)
    if in_use:
        text, remedy = f"the device is open on {node}", f"unmount it on {node}"
    elif wishes:
        text = f"attachment {listed(wishes)} still asks for it on {node}"
        remedy = f"quorate volume detach {volume.metadata.name} --node {node}"
    else:
        text, remedy = f"it is being detached from {node}", ""
    down = node_cause(view, node)
    return Cause(
        f"replica {replica_name}",
        text,
        reason="attached",
        actor=f"whoever uses it on {node}" if in_use or wishes else f"the agent on {node}",
        remedy=remedy,
        because=() if down is None else (down,),
    )


# Configuration

_CONFIGURATION: dict[str, tuple[str, str, str]] = {
    ConfigurationReadyCondition.WAITING_FOR_STORAGE_CLASS: (
        BLOCKED,
        "class {cls}",
        "kubectl describe rsc {cls}; create it, or repair what its Ready condition says",
    ),
    ConfigurationReadyCondition.INVALID_CONFIGURATION: (
        BLOCKED,
        "whoever wrote the configuration",
        "change the class or the volume as the message says",
    ),
    ConfigurationReadyCondition.NEWER_CONFIGURATION_HELD: (
        WORKING,
        "whoever owns class {cls}",
        "set spec.configurationRolloutStrategy of class {cls} to RollingUpdate to apply it to existing volumes",
    ),
    ConfigurationReadyCondition.CONFIGURATION_ROLLOUT_IN_PROGRESS: (
        WORKING,
        "the volumes before it in the rollout",
        "",
    ),
    ConfigurationReadyCondition.STALE_CONFIGURATION: (WORKING, "the volume controller", ""),
}


def _configuration(view: ClusterView, volume: ReplicatedVolume) -> tuple[Found, ...]:
    condition = conditions.get(volume.status.conditions, ConfigurationReadyCondition.TYPE)
    class_name = volume.spec.replicated_storage_class_name
    if condition is None:
        if volume.status.configuration is not None:
            return ()
        text = "nobody has looked at the volume yet"
        remedy = "check that the controllers run (`quorate up`, or `quorate controller`)"
        return ((BLOCKED, Cause(f"volume {volume.metadata.name}", text, actor="the volume controller", remedy=remedy)),)
    if condition.status == conditions.TRUE:
        return ()
    verdict, actor, remedy = _CONFIGURATION.get(condition.reason, (BLOCKED, "the volume controller", ""))
    cause = Cause(
        f"volume {volume.metadata.name}",
        f"its configuration is not ready: {condition.message}",
        reason=_reason(condition),
        since=condition.last_transition_time,
        actor=actor.format(cls=class_name),
        remedy=remedy.format(cls=class_name),
        because=_class_behind(view, class_name, condition.reason),
    )
    return ((verdict, cause),)


def _class_behind(view: ClusterView, class_name: str, reason: str) -> tuple[Cause, ...]:
    if reason != ConfigurationReadyCondition.WAITING_FOR_STORAGE_CLASS or not class_name:
        return ()
    found = view.storage_class(class_name)
    if found is None:
        known = tuple(each.metadata.name for each in view.classes)
        text = "it does not exist" + (f"; there are: {', '.join(known)}" if known else "")
        return (Cause(f"class {class_name}", text, reason="NotFound", actor="whoever defines classes"),)
    ready = conditions.get(found.status.conditions, "Ready")
    if ready is None or ready.status == conditions.TRUE:
        return ()
    return (
        Cause(
            f"class {class_name}",
            ready.message or ready.reason,
            reason=_reason(ready),
            since=ready.last_transition_time,
            actor="whoever owns the class or the pool's nodes",
        ),
    )


# Formation


def _forming(view: ClusterView, volume: ReplicatedVolume) -> Found:
    formation = next((t for t in volume.status.datamesh_transitions if t.type == TransitionType.FORMATION), None)
    step = active_step(formation) if formation is not None else None
    found = tuple(
        (verdict, cause)
        for replica in view.replicas_of(volume.metadata.name)
        for verdict, cause in replica_causes(view, replica)[:1]
    )
    stuck = any(verdict == BLOCKED for verdict, _ in found)
    shown = tuple(cause for verdict, cause in found if verdict == BLOCKED or not stuck)
    record = volume.status.formation
    restarts = f" (started again {record.restarts} times)" if record is not None and record.restarts else ""
    where = f", step {step.name}" if step is not None else ""
    message = (step.message if step else "") or (formation.message if formation else "")
    cause = Cause(
        f"volume {volume.metadata.name}",
        f"it is being formed{where}{restarts}" + (f": {message}" if message else ""),
        reason="transition Formation",
        since=(step.started_at if step else "") or volume.metadata.creation_timestamp,
        actor="the controllers and the agents of its nodes",
        because=shown,
    )
    return (BLOCKED if stuck else WORKING), cause


def active_step(transition: DatameshTransition) -> DatameshTransitionStep | None:
    """The step that is under way."""
    return next((step for step in transition.steps if step.status == StepStatus.ACTIVE), None)


# I/O and protection


def _io(view: ClusterView, volume: ReplicatedVolume) -> tuple[Found, ...]:
    condition = conditions.get(volume.status.conditions, IOReadyCondition.TYPE)
    if condition is None or condition.status == conditions.TRUE or condition.reason == IOReadyCondition.FORMING:
        return ()
    missing = missing_members(view, volume)
    nodes = tuple(dict.fromkeys(_node_of(volume, cause.subject) for cause in missing))
    if condition.reason == IOReadyCondition.IO_SUSPENDED:
        text = f"I/O is frozen to protect data: {condition.message}"
    elif condition.reason == IOReadyCondition.NO_QUORUM:
        text = "it has no quorum: too few members see each other, so nobody may write"
    else:
        text = condition.message
    remedy = f"bring {listed(nodes, 'or')} back" if nodes else "look at the replicas: quorate explain replica NAME"
    cause = Cause(
        f"volume {volume.metadata.name}",
        text,
        reason=_reason(condition),
        since=condition.last_transition_time,
        actor=listed(nodes, "or") or "its members",
        remedy=remedy,
        because=missing,
    )
    return ((BLOCKED, cause),)


def _node_of(volume: ReplicatedVolume, subject: str) -> str:
    name = subject.removeprefix("replica ")
    return next((m.node_name for m in volume.status.datamesh.members if m.name == name), name)


def _protection(view: ClusterView, volume: ReplicatedVolume) -> tuple[Found, ...]:
    """Less protection than promised, without I/O being stopped."""
    promised, observed = volume.status.effective_layout, volume.status.observed_protection
    if observed is None or observed.failures_to_tolerate is None or not serves_io(observed):
        return ()
    gaps = tuple(
        f"{word} is {now}, {wanted} is promised"
        for word, now, wanted in (
            ("FTT", observed.failures_to_tolerate, promised.failures_to_tolerate),
            ("GMDR", observed.guaranteed_minimum_data_redundancy, promised.guaranteed_minimum_data_redundancy),
        )
        if now is not None and wanted is not None and now < wanted
    )
    if not gaps:
        return ()
    names = tuple(member.name for member in volume.status.datamesh.members)
    behind = tuple(
        cause
        for replica in view.replicas_of(volume.metadata.name)
        if replica.metadata.name in names
        for verdict, cause in replica_causes(view, replica)[:1]
        if verdict != DELETING
    )
    own = _distinct(behind)
    cause = Cause(
        f"volume {volume.metadata.name}",
        f"less protected than promised: {'; '.join(gaps)} ({observed.message})",
        reason="observedProtection < effectiveLayout",
        actor=next((c.actor for top in own for _, c in top.walk() if c.actor), "its members"),
        because=own,
    )
    return ((DEGRADED, cause),)


def _distinct(causes: tuple[Cause, ...]) -> tuple[Cause, ...]:
    """Without those that rest on nothing but what another one already names."""
    kept: list[Cause] = []
    named: list[str] = []
    for cause in sorted(causes, key=lambda cause: len(list(cause.walk()))):
        roots = [link.subject for _, link in cause.walk() if not link.because]
        if all(root in named for root in roots):
            continue
        kept.append(cause)
        named.extend(roots)
    return tuple(kept)


# Changes under way


def _convergence(view: ClusterView, volume: ReplicatedVolume) -> tuple[Found, ...]:
    condition = conditions.get(volume.status.conditions, MembershipLayoutConvergedCondition.TYPE)
    if condition is None or condition.status != conditions.FALSE:
        return ()
    stuck = condition.reason in (
        MembershipLayoutConvergedCondition.CANNOT_CONVERGE,
        MembershipLayoutConvergedCondition.TRANSITION_UNSUPPORTED,
    )
    coming = tuple(
        cause
        for replica in view.replicas_of(volume.metadata.name)
        if not any(member.name == replica.metadata.name for member in volume.status.datamesh.members)
        for _, cause in replica_causes(view, replica)[:1]
    )
    cause = Cause(
        f"volume {volume.metadata.name}",
        f"its members are not what the configuration asks for: {condition.message}",
        reason=_reason(condition),
        since=condition.last_transition_time,
        actor="somebody who adds nodes or capacity, or changes the layout" if stuck else "the volume controller",
        remedy=f"quorate plan volume {volume.metadata.name} shows what is possible" if stuck else "",
        because=coming,
    )
    return ((BLOCKED if stuck else WORKING, cause),)


def _transitions(view: ClusterView, volume: ReplicatedVolume) -> tuple[Found, ...]:
    return tuple(_transition(view, volume, transition) for transition in volume.status.datamesh_transitions)


def _transition(view: ClusterView, volume: ReplicatedVolume, transition: DatameshTransition) -> Found:
    step = active_step(transition)
    about = f" of {transition.replica_name}" if transition.replica_name else ""
    position = f", step {transition.steps.index(step) + 1}/{len(transition.steps)} ({step.name})" if step else ""
    message = transition.message or (step.message if step else "")
    reason = transition.reason or (step.reason if step else "")
    waiting = waiting_members(volume, step)
    blocked = tuple(
        Cause(f"replica {name}", f"has not confirmed; it is on {node}", because=(cause,))
        for name, node in waiting
        if (cause := node_cause(view, node)) is not None
    )
    fencing = WAITING_FOR_FENCING in (transition.reason, step.reason if step else "")
    verdict = BLOCKED if fencing or blocked else WORKING
    nodes = tuple(node for _, node in waiting)
    cause = Cause(
        f"volume {volume.metadata.name}",
        f"{transition.type}{about}{position}" + (f": {message}" if message else ""),
        reason=f"transition {transition.plan_id or transition.type}" + (f", {reason}" if reason else ""),
        since=step.started_at if step else "",
        actor=f"the agents on {listed(nodes)}" if nodes else "the volume controller",
        remedy=(
            "bring the silent node back, or prove that it is off: "
            "kubectl taint node NODE node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
            if fencing
            else ""
        ),
        because=blocked,
    )
    return verdict, cause


def waiting_members(volume: ReplicatedVolume, step: DatameshTransitionStep | None) -> tuple[tuple[str, str], ...]:
    """Members that a step still waits for, with their nodes: what the step's message lists."""
    if step is None:
        return ()
    listed_ids = step.message.partition("Waiting: [")[2].partition("]")[0]
    numbers = tuple(part.strip() for part in listed_ids.split(",") if part.strip())
    return tuple(
        (member.name, member.node_name)
        for member in volume.status.datamesh.members
        if f"#{members.member_id(member)}" in numbers
    )


def _placement(view: ClusterView, volume: ReplicatedVolume) -> tuple[Found, ...]:
    found: list[Found] = []
    name = volume.metadata.name
    scheduled = conditions.get(volume.status.conditions, ScheduledCondition.TYPE)
    if scheduled is not None and scheduled.reason == ScheduledCondition.REPLICAS_NOT_SCHEDULED:
        because = tuple(cause for r in view.replicas_of(name) for _, cause in replica_causes(view, r)[:1])
        found.append(
            (
                BLOCKED,
                Cause(
                    f"volume {name}",
                    scheduled.message,
                    reason=_reason(scheduled),
                    since=scheduled.last_transition_time,
                    actor="somebody who adds capacity",
                    remedy="give the pool room or nodes, or ask for a layout with fewer copies",
                    because=because,
                ),
            )
        )
    eligible = conditions.get(volume.status.conditions, SatisfyEligibleNodesCondition.TYPE)
    if eligible is not None and eligible.status == conditions.FALSE:
        manual = eligible.reason == SatisfyEligibleNodesCondition.IN_CONFLICT_WITH_ELIGIBLE_NODES
        found.append(
            (
                DEGRADED if manual else WORKING,
                Cause(
                    f"volume {name}",
                    eligible.message,
                    reason=_reason(eligible),
                    since=eligible.last_transition_time,
                    actor="the volume controller" if not manual else "the pool's owner, or the repair of the class",
                    remedy="make the node eligible again, or delete the replica to replace it" if manual else "",
                ),
            )
        )
    return tuple(found)


# Healthy


def _keeps_healthy(view: ClusterView, volume: ReplicatedVolume) -> tuple[str, ...]:
    status = volume.status
    observed = status.observed_protection
    lines: list[str] = []
    if observed is not None and observed.message:
        lines.append(observed.message)
    for member in status.datamesh.members:
        attached = ", attached" if member.attached else ""
        replica = view.replica(member.name)
        state = replica.status.backing_volume.state if replica is not None and replica.status.backing_volume else ""
        lines.append(f"{member.name} {member.type} on {member.node_name}{f' ({state})' if state else ''}{attached}")
    return tuple(lines)


def _survival_lines(view: ClusterView, volume: ReplicatedVolume) -> tuple[str, ...]:
    if not is_formed(volume):
        return ()
    found = survival_of(view, volume)
    nodes = len({member.node_name for member in volume.status.datamesh.members})
    if found.any_of < 0:
        return ("it does not serve I/O now; nothing can be lost any more",)
    return tuple(_survival_texts(found, nodes))


def _survival_texts(found: Survival, nodes: int) -> list[str]:
    lines: list[str] = []
    if found.any_of == 0:
        alone = tuple(chosen[0] for chosen in found.fatal)
        lines.append(f"the loss of {listed(alone, 'or')} would stop I/O")
        if len(alone) < nodes:
            lines.append("the loss of any other single member would not")
        return lines
    lines.append(f"it survives the loss of any {found.any_of} of its {nodes} nodes")
    if found.fatal:
        shown = "; ".join(" + ".join(chosen) for chosen in found.fatal[:3])
        more = f" and {len(found.fatal) - 3} more" if len(found.fatal) > 3 else ""
        lines.append(f"losing these together would stop I/O: {shown}{more}")
    return lines

"""Which plan leads from what a member is to what it wants to be (facts/datamesh 3.5-3.8)."""

from __future__ import annotations

from quorate.api.replicated_volume import MemberType, TransitionType
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Plan
from quorate.datamesh.registry import Staging

A, D, TB = MemberType.ACCESS, MemberType.DISKFUL, MemberType.TIE_BREAKER

_SYMBOLS = {A: "a", D: "d", TB: "tb"}
_STAR_PLANS = {A: "access/v1", TB: "tiebreaker/v1"}


def _gaining_suffix(context: Context) -> str:
    match context.registry.rules.staging(context):
        case Staging.PLAIN:
            return "-q-up" if context.mesh.voter_count % 2 else ""
        case staging:
            return f"-{staging.value}"


def _losing_suffix(context: Context) -> str:
    match context.registry.rules.staging(context):
        case Staging.PLAIN:
            return "" if context.mesh.voter_count % 2 else "-q-down"
        case staging:
            return f"-{staging.value}"


def joining(context: Context, wanted: str) -> Plan | None:
    """AddReplica."""
    plan_id = f"diskful{_gaining_suffix(context)}/v1" if wanted == D else _STAR_PLANS.get(wanted, "")
    return context.registry.find(TransitionType.ADD_REPLICA, plan_id)


def leaving(context: Context, present: str) -> Plan | None:
    """RemoveReplica; the type is the member's, a liminal one counts as the type it stands for."""
    plan_id = f"remove-diskful{_losing_suffix(context)}/v1" if present == D else _STAR_PLANS.get(present, "")
    return context.registry.find(TransitionType.REMOVE_REPLICA, plan_id)


def changing(context: Context, present: str, wanted: str) -> Plan | None:
    """ChangeReplicaType between two different types."""
    if present not in _SYMBOLS or wanted not in _SYMBOLS:
        return None
    suffix = _gaining_suffix(context) if wanted == D else _losing_suffix(context) if present == D else ""
    plan_id = f"{_SYMBOLS[present]}-to-{_SYMBOLS[wanted]}{suffix}/v1"
    return context.registry.find(TransitionType.CHANGE_REPLICA_TYPE, plan_id)


def resuming(context: Context) -> Plan | None:
    """D∅ → D."""
    return context.registry.find(TransitionType.CHANGE_REPLICA_TYPE, "resume-diskful/v1")


def changing_volume(context: Context) -> Plan | None:
    """D on another volume group."""
    return context.registry.find(TransitionType.CHANGE_REPLICA_TYPE, "change-backing-volume/v1")


def vanishing(context: Context, present: str) -> Plan | None:
    """ForceRemoveReplica."""
    if present != D:
        plan_id = _STAR_PLANS.get(present, "")
    elif context.registry.rules.emergency_staged(context):
        plan_id = "diskful-pair/v1" if context.mesh.voter_count == 2 else "diskful-vote-off/v1"
    else:
        plan_id = "diskful/v1" if context.mesh.voter_count % 2 else "diskful-q-down/v1"
    return context.registry.find(TransitionType.FORCE_REMOVE_REPLICA, plan_id)

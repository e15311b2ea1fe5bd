"""The decision about one operation. Pure.

An operation runs at most once as far as anybody can tell: its guards are checked, then `Running` is durable, then the
command runs; terminal phases are never left. `Running` found by an agent that did not start it (it was restarted) is
judged by state: what is done already is not done again.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import times
from quorate.api.common import OPERATION_MESSAGE_LIMIT
from quorate.api.drbd_resource import DRBDResource
from quorate.api.drbd_resource_operation import DRBDResourceOperation, DRBDResourceOperationStatus, Phase
from quorate.api.labels import PREFIX
from quorate.api.messages import cut
from quorate.api.value import replace
from quorate.machinery.effects import Answers, Decision, Half, Patch
from quorate.machinery.reader import Reader

CONFIRMATION = f"{PREFIX}/confirm-data-loss"
"""Annotation on a ForcePrimary operation: an operator names the DRBDResource whose newest data may be lost."""
VERIFY_POLL = 5.0
SUPPORTED = ("CreateNewUUID", "Invalidate", "Verify", "ForcePrimary")


@dataclass(frozen=True, slots=True)
class Execute:
    """Run the operation; the answer is an `Ended`."""

    operation: str
    uid: str
    type: str
    resource: str
    clear_bitmap: bool = False
    force_resync: bool = False
    quorum: int = 0
    """The published q: a forced promotion is judged by a number, never by `majority`."""


@dataclass(frozen=True, slots=True)
class Inspect:
    """Look whether the operation is safe now; the answer is a text, empty when it is."""

    execute: Execute


@dataclass(frozen=True, slots=True)
class FindTarget:
    """Read the DRBDResource live; the answer is the object or None. Caches of two kinds are not ordered (rule 8)."""

    resource: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended, or that it goes on."""

    phase: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class OperationSnapshot:
    """The operation and its target."""

    operation: DRBDResourceOperation | None
    target: DRBDResource | None
    node_name: str


def gather(reader: Reader, key: str, *, node_name: str) -> OperationSnapshot:
    operation = reader.get(DRBDResourceOperation, key)
    if operation is None or operation.spec.node_name != node_name:
        return OperationSnapshot(None, None, node_name)
    return OperationSnapshot(operation, reader.get(DRBDResource, operation.spec.drbd_resource_name), node_name)


def decide(snapshot: OperationSnapshot, answers: Answers, now: float) -> Decision:
    """Start, run or end the operation."""
    operation = snapshot.operation
    if operation is None or operation.status.phase in Phase.TERMINAL or operation.metadata.deleting:
        return Decision()
    target = snapshot.target
    if target is None:
        request = FindTarget(operation.spec.drbd_resource_name)
        if request not in answers:
            return Decision(ask=(request,))
        found = answers[request]
        target = found if isinstance(found, DRBDResource) else None
    refusal = compute_refusal(operation, target, snapshot.node_name)
    if refusal:
        return _end(operation, Ended(Phase.FAILED, refusal), now)
    execute = _execute(operation, target)
    if operation.status.phase != Phase.RUNNING:
        inspect = Inspect(execute)
        if inspect not in answers:
            return Decision(ask=(inspect,))
        if answers[inspect]:
            return _end(operation, Ended(Phase.FAILED, str(answers[inspect])), now)
        started = replace(operation.status, phase=Phase.RUNNING, started_at=times.format(now))
        return Decision(effects=(_patch(operation, started, "the operation is started"),), requeue=True)
    if execute not in answers:
        return Decision(ask=(execute,))
    ended = answers[execute]
    if not isinstance(ended, Ended):
        raise TypeError(f"unexpected answer {ended!r}")
    if ended.phase == Phase.RUNNING:
        return Decision(wake_after=VERIFY_POLL)
    return _end(operation, ended, now)


def compute_refusal(operation: DRBDResourceOperation, target: DRBDResource | None, node_name: str) -> str:
    """Why the operation cannot run at all; empty when it can (facts/agent 1.15)."""
    spec = operation.spec
    if spec.type not in SUPPORTED:
        return f"{spec.type} is not supported by this agent"
    parameters = spec.create_new_uuid
    if parameters is not None and parameters.clear_bitmap and parameters.force_resync:
        return "clearBitmap and forceResync exclude each other"
    if target is None:
        return f"DRBDResource {spec.drbd_resource_name} does not exist"
    if target.spec.node_name != node_name:
        return f"DRBDResource {spec.drbd_resource_name} is on node {target.spec.node_name}"
    if target.spec.maintenance:
        return f"DRBDResource {spec.drbd_resource_name} is in maintenance mode"
    if spec.type == "ForcePrimary" and operation.metadata.annotations.get(CONFIRMATION) != spec.drbd_resource_name:
        return f"annotation {CONFIRMATION} must name {spec.drbd_resource_name}: newer data elsewhere would be lost"
    return ""


def _execute(operation: DRBDResourceOperation, target: DRBDResource | None) -> Execute:
    spec = operation.spec
    parameters = spec.create_new_uuid
    return Execute(
        operation=operation.metadata.name,
        uid=operation.metadata.uid,
        type=spec.type,
        resource=spec.drbd_resource_name,
        clear_bitmap=parameters is not None and parameters.clear_bitmap,
        force_resync=parameters is not None and parameters.force_resync,
        quorum=(target.spec.quorum or 0) if target else 0,
    )


def _end(operation: DRBDResourceOperation, ended: Ended, now: float) -> Decision:
    status = replace(
        operation.status,
        phase=ended.phase,
        message=cut(ended.message, OPERATION_MESSAGE_LIMIT),
        started_at=operation.status.started_at or times.format(now),
        completed_at=times.format(now),
    )
    return Decision(effects=(_patch(operation, status, f"the operation ended: {ended.phase}"),))


def _patch(operation: DRBDResourceOperation, status: DRBDResourceOperationStatus, cause: str) -> Patch:
    return Patch(operation, replace(operation, status=status), Half.STATUS, cause)

"""Condition Attached: whether the replica is Primary where it shall be, and its I/O flows (seed 001)."""

from __future__ import annotations

from quorate.api.replicated_volume_replica import AttachedCondition
from quorate.controllers.replica.drbd_resource import DrbdOutcome
from quorate.controllers.replica.situation import Situation
from quorate.controllers.replica.status_fields import is_attached
from quorate.controllers.replica.verdict import Verdict

R = AttachedCondition


def compute_attached(situation: Situation, outcome: DrbdOutcome) -> Verdict | None:
    """The condition; absent where nobody intends or has an attachment."""
    drbdr = situation.drbdr
    intended = situation.member is not None and situation.member.attached
    actual = is_attached(drbdr)
    if drbdr is None or not (intended or actual):
        return None
    if not outcome.agent_ready:
        return Verdict.unknown(R.AGENT_NOT_READY, "Agent is not ready, attachment is unknown")
    if outcome.pending:
        return Verdict.unknown(R.APPLYING_CONFIGURATION, "Configuration is being applied")
    if intended and not actual:
        return Verdict.false(R.ATTACHMENT_FAILED, "Expected to be attached, but is not")
    if actual and not intended:
        return Verdict.true(R.DETACHMENT_FAILED, "Expected to be detached, but still attached")
    if drbdr.status.device_io_suspended:
        return Verdict.false(R.IO_SUSPENDED, "Attached, but I/O is suspended")
    return Verdict.true(R.ATTACHED, "Attached and ready for I/O")

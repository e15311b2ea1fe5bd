"""What to do when the API server refuses a logical volume: say why, and not try the same thing over and over.

The logical volume is another project's API: its rules are not ours to know, so a refusal is learned from the server. Usually
the create or resize simply succeeds. Only when it visibly did not (it was tried before, and the volume is still not there)
the server is asked in a dry run, and its reasons become ProvisioningFailed or ResizeFailed (facts/controllers 5.2.7).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from quorate.api import conditions, wire
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.replicated_volume_replica import BackingVolumeReadyCondition
from quorate.controllers.replica.publish import HeldSince
from quorate.controllers.replica.situation import Situation
from quorate.machinery import errors
from quorate.machinery.client import Client
from quorate.machinery.effects import Answers, Create, Effect, Half, Patch

R = BackingVolumeReadyCondition

TRIED_AFTER = 1.0
"""Seconds after which a volume that is still not there was tried in vain."""
RETRY_AFTER = 300.0
"""Seconds until a refused volume is tried again: the other project's rules may change without an event."""
TRIED_REASONS = (R.PROVISIONING, R.REPROVISIONING, R.RESIZING, R.PROVISIONING_FAILED, R.RESIZE_FAILED)


@dataclass(frozen=True)
class WouldBeRefused:
    """Would the server refuse this? Answered with its reasons, empty when it would not."""

    before: LVMLogicalVolume | None
    """The volume as it is; None when it is to be created."""
    after: LVMLogicalVolume


def find_question(effects: tuple[Effect, ...]) -> WouldBeRefused | None:
    """The creation or resize among the effects, as a question."""
    for effect in effects:
        match effect:
            case Create(obj=LVMLogicalVolume() as made):
                return WouldBeRefused(None, made)
            case Patch(before=LVMLogicalVolume() as before, after=LVMLogicalVolume() as after, half=Half.MAIN):
                if before.spec != after.spec:
                    return WouldBeRefused(before, after)
            case _:
                pass
    return None


def was_tried(situation: Situation, answers: Answers, now: float) -> bool:
    """Whether the volume was asked for before: published as such, or held back for a while."""
    if conditions.reason_of(situation.replica.status.conditions, R.TYPE) in TRIED_REASONS:
        return True
    metadata = situation.replica.metadata
    since = answers.get(HeldSince(metadata.uid, metadata.resource_version))
    return isinstance(since, float) and now - since >= TRIED_AFTER


def dry_run(client: Client | None) -> Callable[[WouldBeRefused], Awaitable[str]]:
    """Asks the server; without a client every attempt is made for real."""

    async def ask(question: WouldBeRefused) -> str:
        if client is None:
            return ""
        try:
            if question.before is None:
                await client.create(question.after, dry_run=True)
            else:
                await client.patch(question.before, wire.merge_patch(question.before, question.after), dry_run=True)
        except errors.Invalid as error:
            causes = (f"{cause.field}: {cause.message}" for cause in error.causes)
            return f"LVMLogicalVolume {question.after.metadata.name} is refused: {'; '.join(causes) or error.message}"
        except errors.ApiError:
            return ""  # The real attempt tells.
        return ""

    return ask

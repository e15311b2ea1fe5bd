"""reconcileDeletion: tell the attachments, let the replicas go, clear the members, then release the volume."""

from __future__ import annotations

from quorate.api import labels
from quorate.api.replicated_volume import TransitionType
from quorate.api.value import replace
from quorate.controllers.volume import attachments, finalizers, replicas
from quorate.controllers.volume.formation import transition
from quorate.controllers.volume.snapshot import Snapshot
from quorate.machinery.effects import Decision, Effect, Half, Patch

MESSAGE = "ReplicatedVolume is being deleted"


def should_not_exist(snapshot: Snapshot) -> bool:
    """rvShouldNotExist: deleting, no foreign finalizers, and nobody can be using it.

    While forming there is nothing attached by construction, so deletion never waits for a formation that cannot end (L9).
    """
    volume = snapshot.existing_volume()
    if not volume.metadata.deleting:
        return False
    if any(finalizer != labels.FINALIZER_VOLUME for finalizer in volume.metadata.finalizers):
        return False
    status = volume.status
    if transition.is_forming(status):
        return True
    busy = (TransitionType.ATTACH, TransitionType.DETACH)
    if any(t.type in busy for t in status.datamesh_transitions):
        return False
    return not any(member.attached for member in status.datamesh.members)


def decide(snapshot: Snapshot, now: float) -> Decision:
    """The deletion branch of the root."""
    volume = snapshot.existing_volume()
    effects: list[Effect] = list(attachments.waiting_effects(snapshot.attachments, MESSAGE, now))
    for replica in snapshot.replicas:
        effects.extend(replicas.forced_deletion(replica, "the volume is being deleted", decided_from=(volume,)))
    if volume.status.datamesh.members:
        cleared = replace(volume.status, datamesh=replace(volume.status.datamesh, members=()))
        effects.append(
            Patch(
                before=volume,
                after=replace(volume, status=cleared),
                half=Half.STATUS,
                cause="the volume is being deleted: its members go",
            )
        )
        volume = replace(volume, status=cleared)
    effects.extend(finalizers.attachment_removals(snapshot, volume.status))
    if not snapshot.replicas and labels.FINALIZER_VOLUME in volume.metadata.finalizers:
        # reconcileMetadata: the finalizer goes once no children are left.
        rest = tuple(f for f in volume.metadata.finalizers if f != labels.FINALIZER_VOLUME)
        after = replace(volume, metadata=replace(volume.metadata, finalizers=rest))
        effects.append(Patch(before=volume, after=after, half=Half.MAIN, cause="the volume has no replicas left"))
    return Decision(effects=tuple(effects))


def decide_orphaned(snapshot: Snapshot, now: float) -> Decision:
    """reconcileOrphanedRVAs: attachments of a volume that does not exist wait, or go if they are being deleted."""
    message = f"ReplicatedVolume {snapshot.name} does not exist"
    effects = attachments.waiting_effects(snapshot.attachments, message, now)
    return Decision(effects=(*effects, *finalizers.attachment_removals(snapshot, None)))

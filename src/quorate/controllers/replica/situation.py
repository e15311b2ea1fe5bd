"""The situation: a snapshot with the questions every step asks answered once.

`stale` guards against caches of different kinds that are not ordered against each other (rule 8): when the replica or its
DRBDResource already carries a higher revision than the volume we see, our view of the volume is old. Acting on it would
undo a published configuration, or report a member that has joined as one that left. Until the volume catches up the
controller only observes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from quorate.api.drbd_resource import DRBDResource
from quorate.api.labels import FINALIZER_REPLICA
from quorate.api.replicated_volume import Datamesh, DatameshMember, ReplicatedVolume
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.controllers.replica.snapshot import Snapshot
from quorate.datamesh import projection

REVISION_ANNOTATION = "sds-replicated-volume.deckhouse.io/datamesh-revision"
"""On a DRBDResource: the datamesh revision its spec was last written for. Written only together with the spec."""


@dataclass(frozen=True)
class Situation:
    """A snapshot of a replica that exists."""

    snapshot: Snapshot
    replica: ReplicatedVolumeReplica

    @cached_property
    def volume(self) -> ReplicatedVolume | None:
        """The replica's volume; a volume of the same name that is not the replica's owner is another volume."""
        volume = self.snapshot.volume
        if volume is None:
            return None
        owner = next((ref for ref in self.replica.metadata.owner_references if ref.controller), None)
        return volume if owner is None or owner.uid == volume.metadata.uid else None

    @property
    def drbdr(self) -> DRBDResource | None:
        """The replica's DRBDResource."""
        return self.snapshot.drbdr

    @property
    def generation(self) -> int:
        """Generation that conditions are computed from."""
        return self.replica.metadata.generation

    @property
    def deleting(self) -> bool:
        """Whether the replica is being deleted."""
        return self.replica.metadata.deleting

    @property
    def should_not_exist(self) -> bool:
        """Deleting, and nobody but this controller holds it: the children go."""
        return self.deleting and all(finalizer == FINALIZER_REPLICA for finalizer in self.replica.metadata.finalizers)

    @cached_property
    def datamesh(self) -> Datamesh | None:
        """The published datamesh; None before the first revision."""
        volume = self.volume
        return volume.status.datamesh if volume is not None and volume.status.datamesh_revision > 0 else None

    @property
    def revision(self) -> int:
        """The published revision; 0 without a datamesh."""
        return self.volume.status.datamesh_revision if self.volume is not None else 0

    @property
    def recorded_revision(self) -> int:
        """The revision the replica reported as fully configured; 0 = it never joined, or it left."""
        return self.replica.status.datamesh_revision

    @cached_property
    def applied_revision(self) -> int:
        """The revision the DRBDResource spec was last written for; 0 = unknown."""
        text = self.drbdr.metadata.annotations.get(REVISION_ANNOTATION, "") if self.drbdr is not None else ""
        return int(text) if text.isdecimal() else 0

    @property
    def stale(self) -> bool:
        """Whether the volume we see is older than what was already done."""
        return self.datamesh is not None and self.revision < max(self.recorded_revision, self.applied_revision)

    @cached_property
    def member(self) -> DatameshMember | None:
        """The replica's entry in the datamesh."""
        datamesh = self.datamesh
        if datamesh is None:
            return None
        return projection.find_member(datamesh, self.replica.metadata.name)

    @property
    def was_member(self) -> bool:
        """Member by its own report; the last thing it told the volume."""
        return self.recorded_revision != 0

    @cached_property
    def expected_peers(self) -> tuple[DatameshMember, ...]:
        """The members this one is connected to."""
        datamesh, member = self.datamesh, self.member
        return projection.expected_peers(datamesh, member) if datamesh is not None and member is not None else ()

"""What the attachment planner sees of each node (seed 000, buildAttachmentsSummary)."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api.replicated_volume import DatameshMember, TransitionType
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.datamesh.context import Replica
from quorate.datamesh.records import subject_of
from quorate.datamesh.state import State


@dataclass(frozen=True, slots=True)
class Node:
    """One node with attachments, an attached member, or an attachment transition."""

    name: str
    attachments: tuple[ReplicatedVolumeAttachment, ...]
    member: DatameshMember | None
    replica: Replica | None
    """The member's replica, else the replica with the lowest id on the node."""
    attaching: bool
    detaching: bool

    @property
    def earliest_active(self) -> str:
        """Creation time of the first attachment that is not being deleted; empty = none."""
        for attachment in self.attachments:
            if not attachment.metadata.deletion_timestamp:
                return attachment.metadata.creation_timestamp or "0"
        return ""

    @property
    def wanted(self) -> bool:
        """Whether somebody wants the volume here."""
        return self.earliest_active != ""

    @property
    def attached(self) -> bool:
        """Whether the member here is told to be Primary."""
        return self.member is not None and self.member.attached


def compute_nodes(state: State) -> tuple[Node, ...]:
    """The nodes that matter, in FIFO order: earliest active attachment, then name; nodes nobody wants come first."""
    members = {member.node_name: member for member in state.mesh.datamesh.members}
    replicas: dict[str, Replica] = {}
    for replica in state.world.replicas.values():
        if replica.node_name and replica.rvr is not None:
            replicas.setdefault(replica.node_name, replica)
    active: dict[int, str] = {}
    for transition in state.transitions:
        if transition.type in (TransitionType.ATTACH, TransitionType.DETACH):
            active[subject_of(transition)] = transition.type
    names = dict.fromkeys(state.world.attachments)
    names.update(dict.fromkeys(member.node_name for member in state.mesh.datamesh.members if member.attached))
    found: list[Node] = []
    for name in names:
        member = members.get(name)
        replica = state.world.replicas[_id(member)] if member is not None else replicas.get(name)
        running = active.get(replica.id, "") if replica is not None else ""
        found.append(
            Node(
                name=name,
                attachments=state.world.attachments.get(name, ()),
                member=member,
                replica=replica,
                attaching=running == TransitionType.ATTACH,
                detaching=running == TransitionType.DETACH,
            )
        )
    return tuple(sorted(found, key=lambda node: (node.earliest_active, node.name)))


def _id(member: DatameshMember) -> int:
    return int(member.name[member.name.rindex("-") + 1 :])

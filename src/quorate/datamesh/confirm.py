"""Confirmation predicates (facts/datamesh 3.2): who must confirm a step and who has.

Sets are recomputed from the current members on every pass, so removing a dead third party releases everybody who waited
for it (L3). A replica confirms by `datameshRevision >= step revision`; "left" (revision 0) and "gone" (no object) confirm
only where a predicate says so (decision 11). Fencing evidence stands for a node that cannot confirm (decision 6).
"""

from __future__ import annotations

from quorate.api.replicated_volume import TransitionType
from quorate.datamesh import ids
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Confirmation
from quorate.datamesh.members import id_of


def _running(context: Context, members: int) -> int:
    """Members that hold a configuration: one on a fenced node that nobody reaches has none and need not confirm."""
    return members & ~context.world.fenced


def _at_revision(context: Context, must: int, revision: int) -> int:
    replicas = context.world.replicas
    confirmed = 0
    for replica_id in ids.iterate(must):
        replica = replicas.get(replica_id)
        if replica is not None and replica.rvr is not None and replica.revision >= revision:
            confirmed |= 1 << replica_id
    return confirmed


def _has_left(context: Context) -> bool:
    """Whether the subject is out: it reports revision 0, its object is gone, or its node is fenced."""
    replica = context.replica
    return replica.rvr is None or replica.revision == 0 or bool(context.world.fenced & context.subject_bit)


def by_subject(context: Context, revision: int) -> Confirmation:
    """C-SUBJ: the subject alone (its disk)."""
    must = context.subject_bit
    return Confirmation(must, _at_revision(context, must, revision))


def by_attached_subject(context: Context, revision: int) -> Confirmation:
    """Attach: the subject at the revision, with its device. A refused promotion records the revision without one: that is
    enough once nobody wants the volume there any more, so an Attach that cannot succeed does not stand in Detach's way."""
    must = context.subject_bit
    done = _has_device(context) or not _is_wanted(context)
    return Confirmation(must, _at_revision(context, must, revision) if done else 0)


def by_detached_subject(context: Context, revision: int) -> Confirmation:
    """C-SUBJ-GONE (Detach): the subject at the revision, without a device; also when it is no member any more, reports
    revision 0, or has no object."""
    must = context.subject_bit
    if context.member is None or _has_left(context):
        return Confirmation(must, must)
    return Confirmation(must, 0 if _has_device(context) else _at_revision(context, must, revision))


def _is_wanted(context: Context) -> bool:
    member = context.member
    attachments = context.world.attachments.get(member.node_name, ()) if member is not None else ()
    return any(not attachment.metadata.deletion_timestamp for attachment in attachments)


def _has_device(context: Context) -> bool:
    rvr = context.replica.rvr
    return rvr is not None and rvr.status.attachment is not None


def by_full_mesh(context: Context, revision: int) -> Confirmation:
    """C-FM: the full-mesh members and the subject (a star member comes or changes)."""
    must = _running(context, context.mesh.full_mesh) | context.subject_bit
    return Confirmation(must, _at_revision(context, must, revision))


def by_full_mesh_leaving(context: Context, revision: int) -> Confirmation:
    """C-FM-LEAVE: as C-FM; the leaving subject also by having left."""
    must = _running(context, context.mesh.full_mesh) | context.subject_bit
    confirmed = _at_revision(context, must, revision)
    if _has_left(context):
        confirmed |= context.subject_bit
    return Confirmation(must, confirmed)


def by_voters(context: Context, revision: int) -> Confirmation:
    """Everybody whose quorum a q or a tie-breaker's vote decides: full mesh and tie-breakers. Access members have no say."""
    must = _running(context, context.mesh.full_mesh | context.mesh.tie_breakers)
    return Confirmation(must, _at_revision(context, must, revision))


def by_all(context: Context, revision: int) -> Confirmation:
    """C-ALL: every member (voters, q, qmr, full mesh)."""
    must = _running(context, context.mesh.all)
    return Confirmation(must, _at_revision(context, must, revision))


def by_all_leaving(context: Context, revision: int) -> Confirmation:
    """C-ALL-LEAVE: every member and the subject, which is none any more; the subject also by having left."""
    must = _running(context, context.mesh.all) | context.subject_bit
    confirmed = _at_revision(context, must, revision)
    if _has_left(context):
        confirmed |= context.subject_bit
    return Confirmation(must, confirmed)


def by_remaining(context: Context, revision: int) -> Confirmation:
    """Emergency (decision 6): every remaining member that may still run, tie-breakers included."""
    must = _running(context, context.mesh.all & ~context.subject_bit)
    return Confirmation(must, _at_revision(context, must, revision))


def by_nobody(context: Context, revision: int) -> Confirmation:
    """C-NONE: done at once."""
    return Confirmation(0, 0)


def by_multiattach(context: Context, revision: int) -> Confirmation:
    """C-MULTI: members with a disk and potentially attached ones, unconfirmed Detach included (S32, hazard H24)."""
    must = context.mesh.disks | context.mesh.attached
    for transition in context.transitions:
        if transition.type == TransitionType.DETACH and transition.replica_name:
            must |= 1 << id_of(transition.replica_name)
    must = _running(context, must & context.mesh.all)
    return Confirmation(must, _at_revision(context, must, revision))


def by_connected(context: Context, revision: int) -> Confirmation:
    """C-CONN: every member, with all its expected connections verified at this revision."""
    must = _running(context, context.mesh.all)
    confirmed = 0
    for replica_id in ids.iterate(_at_revision(context, must, revision)):
        if not context.unverified_peers(replica_id, revision):
            confirmed |= 1 << replica_id
    return Confirmation(must, confirmed)


def _added_networks(context: Context) -> tuple[str, ...]:
    transition = context.transition
    if transition is None:
        return ()
    before = transition.from_system_network_names or ()
    return tuple(name for name in transition.to_system_network_names or () if name not in before)


def by_addresses(context: Context, revision: int) -> Confirmation:
    """C-ADDR: every member, reporting an address on every added network."""
    added = _added_networks(context)
    must = _running(context, context.mesh.all)
    confirmed = 0
    for replica_id in ids.iterate(_at_revision(context, must, revision)):
        rvr = context.world.replicas[replica_id].rvr
        reported = () if rvr is None else tuple(address.system_network_name for address in rvr.status.addresses)
        if all(name in reported for name in added):
            confirmed |= 1 << replica_id
    return Confirmation(must, confirmed)


def established_on(context: Context, first: int, second: int, network: str, revision: int) -> bool:
    """Whether a fresh side at this revision reports the connection established on a network."""
    for own, peer_id in ((first, second), (second, first)):
        replica = context.world.replicas.get(own)
        if replica is None or replica.rvr is None or not replica.agent_ready or replica.revision < revision:
            continue
        for peer in replica.rvr.status.peers:
            if id_of(peer.name) == peer_id and network in peer.connection_established_on:
                return True
    return False


def by_connected_on_added(context: Context, revision: int) -> Confirmation:
    """C-CONN-NEW: every member, with every expected connection verified on what was added.

    DRBD keeps one established path per connection even when several are configured (recordings, "Two paths"). So where an
    old network remains, Connected at this revision is all that can be seen; where none remains (migrate), the connection
    must be established on an added network before the old one may go (S44).
    """
    transition = context.transition
    added = _added_networks(context)
    kept = transition is not None and any(
        name in (transition.from_system_network_names or ()) for name in transition.to_system_network_names or ()
    )
    must = _running(context, context.mesh.all)
    confirmed = 0
    for replica_id in ids.iterate(_at_revision(context, must, revision)):
        if context.unverified_peers(replica_id, revision):
            continue
        if kept or all(
            any(established_on(context, replica_id, peer, network, revision) for network in added)
            for peer in ids.iterate(context.expected_peers(replica_id))
        ):
            confirmed |= 1 << replica_id
    return Confirmation(must, confirmed)

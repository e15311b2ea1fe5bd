"""From the model's objects to the quorum rule: what a node sees of itself and its peers.

The rule itself is `quorum.py`; this module only collects its inputs. A node with a disk counts the node ids of its
metadata (Q2), so a removed peer counts until `forget-peer`; a node without one counts its configured peers (Q7).
"""

from __future__ import annotations

from quorate.simulator.metadata import PeerEntry
from quorate.simulator.model import PeerVolume, Resource, Volume
from quorate.simulator.options import Value
from quorate.simulator.quorum import (
    ALL,
    MAJORITY,
    OFF,
    OwnView,
    PeerView,
    QuorumOptions,
    Verdict,
    compute_tally,
    compute_verdict,
)
from quorate.simulator.states import Disk, Replication

_WORDS = {"off": OFF, "majority": MAJORITY, "all": ALL}


def compute_setting(value: Value) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else _WORDS[str(value)]


def compute_options(resource: Resource) -> QuorumOptions:
    """The stock module lacks the last option; its default is what the stock module does."""
    options = resource.options
    dynamic_voters = options["quorum-dynamic-voters"] is True
    return QuorumOptions(
        compute_setting(options["quorum"]), compute_setting(options["quorum-minimum-redundancy"]), dynamic_voters
    )


def evaluate(volume: Volume, *, had_quorum: bool) -> Verdict:
    """The rule applied to the states as they are now; `had_quorum` is the flag before the change at hand."""
    votes = volume.backing is None or volume.backing.options["non-voting"] is not True
    own = OwnView(str(volume.disk), volume.intentional_diskless, votes=votes)
    if volume.disk > Disk.ATTACHING and volume.backing is not None:
        peers = _views_from_metadata(volume)
    else:
        peers = [_view_of_peer(peer, None) for peer in volume.peers()]
    options = compute_options(volume.resource)
    return compute_verdict(compute_tally(own, peers, had_quorum=had_quorum), options, had_quorum=had_quorum)


def _views_from_metadata(volume: Volume) -> list[PeerView]:
    assert volume.backing is not None
    configured = {peer.connection.peer_id: peer for peer in volume.peers()}
    views: list[PeerView] = []
    for node_id, entry in enumerate(volume.backing.metadata.peers):
        if node_id == volume.resource.node_id or not entry.known:
            continue
        peer = configured.get(node_id)
        views.append(_view_of_peer(peer, entry) if peer is not None else _view_of_stranger(volume, node_id, entry))
    return views


def _view_of_peer(peer: PeerVolume, entry: PeerEntry | None) -> PeerView:
    connection = peer.connection
    return PeerView(
        connected=peer.replication is not Replication.OFF,
        disk=str(peer.disk),
        has_bitmap=peer.wants_bitmap,
        tiebreaker=peer.options["peer-tiebreaker"] is True,
        quorumless=connection.peer_id not in connection.resource.members,
        outdated=entry is not None and entry.outdated,
        quorate=peer.quorate,
        allow_remote_read=connection.remote_read,
    )


def _view_of_stranger(volume: Volume, node_id: int, entry: PeerEntry) -> PeerView:
    """A node id of the metadata without a connection: a voter when it once had a disk, else a lost tie-breaker."""
    return PeerView(
        connected=False,
        disk=str(Disk.UNKNOWN),
        has_bitmap=entry.seen,
        quorumless=node_id not in volume.resource.members,
        outdated=entry.outdated,
    )


def compute_refusal_text(volume: Volume, verdict: Verdict) -> str:
    """Why a promotion or a leave is refused with -25, in the kernel's words (S5, S12b, X5)."""
    if volume.disk <= Disk.ATTACHING:
        return "no UpToDate peer with quorum"
    if verdict.visible < verdict.quorum_at:
        return f"{verdict.visible} of {verdict.voters} nodes visible, need {verdict.quorum_at} for quorum"
    needed = f"need {verdict.minimum_redundancy_at} for quorum-minimum-redundancy"
    return f"{verdict.up_to_date} of {verdict.voters} nodes up_to_date, {needed}"

"""The peers' part of the plan: connections, their options and paths, and peers that are no longer wanted. Pure."""

from __future__ import annotations

import re

from quorate.agent import commands
from quorate.agent.actual import ActualPath, ActualPeer, ActualResource, Observation
from quorate.agent.commands import Step
from quorate.agent.intended import Intended, IntendedPath, IntendedPeer
from quorate.agent.parsers.show import text
from quorate.api.common import ConnectionState, DiskState

_SIZE = re.compile(r"(\d+)([skKmMgG])")
_UNITS = {"s": 512, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
MAX_NODE_ID = 31
VOTE_OPTIONS = ("allow-remote-read", "peer-tiebreaker")
COMPARED_WITHOUT_CASE = frozenset({"cram-hmac-alg"})


def plan_peers(actual: ActualResource, intended: Intended, held: frozenset[int]) -> tuple[Step, ...]:
    """Bring every wanted connection to what it shall be, in order of node ids."""
    steps: list[Step] = []
    for peer in sorted(intended.peers, key=lambda each: each.node_id):
        current = actual.peer(peer.node_id)
        if current is None:
            steps += _plan_new_peer(intended, peer)
        elif _remembers_disk(actual, peer, current):
            steps += [commands.del_peer(intended.name, peer.node_id), commands.forget_peer(intended.name, peer.node_id)]
        else:
            steps += _plan_peer(intended, peer, current, held)
    return tuple(steps)


def _remembers_disk(actual: ActualResource, peer: IntendedPeer, current: ActualPeer) -> bool:
    """A peer that is diskless now, but whose disk the own metadata still knows as Outdated: the kernel keeps the bitmap
    "when both sides have a disk" (162, D16), and without that change nobody would ever connect. Forgetting it frees the
    slot; the peer is made anew in the next round."""
    attached = actual.volume is not None and actual.volume.attached
    apart = current.connection_state == ConnectionState.STAND_ALONE
    known = current.disk_state in (DiskState.OUTDATED, DiskState.INCONSISTENT)
    return attached and apart and known and current.bitmap and not peer.bitmap


def plan_votes(actual: ActualResource, intended: Intended, *, gained: bool) -> tuple[Step, ...]:
    """Votes of tie-breakers that are connected already: taken away before anything else, given back after everything
    else. A diskless peer votes when it is visible to quorum and its vote is not suspended."""
    steps: list[Step] = []
    for peer in intended.peers:
        current = actual.peer(peer.node_id)
        if current is None or not _changes_vote(peer, current) or peer.breaks_ties is not gained:
            continue
        net = [option for option in _differing_net_options(peer, current) if option[0] == "allow-remote-read"]
        device = [option for option in _differing_device_options(peer, current) if option[0] == "peer-tiebreaker"]
        steps += [commands.net_options(intended.name, peer.node_id, net)] if net else []
        steps += [commands.peer_device_options(intended.name, peer.node_id, device)] if device else []
    return tuple(steps)


def loses_voters(actual: ActualResource, intended: Intended) -> bool:
    """Whether a voter of the present configuration is none in the intended one."""
    voters = {peer.node_id for peer in intended.peers if peer.votes}
    return any(peer.bitmap and peer.allow_remote_read and peer.node_id not in voters for peer in actual.peers)


def plan_removed_peers(observation: Observation, actual: ActualResource, intended: Intended) -> tuple[Step, ...]:
    """Connections that are no longer wanted: disconnect, delete, forget.

    A Primary refuses a plain disconnect that would cost its quorum (-25), and q is lowered only afterwards. Forcing it
    then is safe: I/O stands still until q is lowered, nobody writes in between (facts/kernel-quorum 7).
    """
    wanted = {peer.node_id for peer in intended.peers}
    steps: list[Step] = []
    for peer in actual.peers:
        if peer.node_id in wanted:
            continue
        if peer.connection_state != ConnectionState.STAND_ALONE:
            force = peer.node_id in observation.refused_disconnects
            steps.append(commands.disconnect(intended.name, peer.node_id, force=force))
        steps.append(commands.del_peer(intended.name, peer.node_id))
        steps.append(commands.forget_peer(intended.name, peer.node_id))
    return tuple(steps)


def plan_forgotten_peers(observation: Observation, actual: ActualResource, intended: Intended) -> tuple[Step, ...]:
    """Peers whose connection is gone but which the metadata may still count: an agent that ended between `del-peer` and
    `forget-peer`, or a peer removed from the spec while this node was down (S9: it counts until it is forgotten)."""
    wanted = {peer.node_id for peer in intended.peers} | {peer.node_id for peer in actual.peers} | {intended.node_id}
    remembered = set(intended.formerly_known)
    if observation.probe is not None and observation.probe.dump is not None:
        remembered |= set(observation.probe.dump.known_peers)
    if observation.forget_all_others:
        remembered |= set(range(MAX_NODE_ID + 1))
    stale = sorted(remembered - wanted - observation.forgotten)
    return tuple(commands.forget_peer(intended.name, node_id) for node_id in stale)


def _plan_new_peer(intended: Intended, peer: IntendedPeer) -> list[Step]:
    """Everything about the peer is said before the first connection attempt (T4).

    Whether a diskless peer's bitmap can be dropped is known only once it exists (`_remembers_disk`): look first.
    """
    if not peer.bitmap and intended.disk is not None and not intended.diskless:
        return [commands.new_peer(intended.name, peer.node_id, peer.name, peer.net)]
    device = [option for option in peer.device if option != ("peer-tiebreaker", "yes")]
    return [
        commands.new_peer(intended.name, peer.node_id, peer.name, peer.net),
        commands.peer_device_options(intended.name, peer.node_id, device),
        *(commands.new_path(intended.name, peer.node_id, str(path.local), str(path.remote)) for path in peer.paths),
        *([commands.connect(intended.name, peer.node_id)] if peer.paths else []),
        *([commands.pause_sync(intended.name, peer.node_id, pause=True)] if peer.pause_sync else []),
    ]


def _plan_peer(intended: Intended, peer: IntendedPeer, current: ActualPeer, held: frozenset[int]) -> list[Step]:
    steps: list[Step] = []
    apart = VOTE_OPTIONS if _changes_vote(peer, current) else ()
    net = [option for option in _differing_net_options(peer, current) if option[0] not in apart]
    if net:
        steps.append(commands.net_options(intended.name, peer.node_id, net))
    device = [option for option in _differing_device_options(peer, current) if option[0] not in apart]
    if device:
        steps.append(commands.peer_device_options(intended.name, peer.node_id, device))
    steps += _plan_paths(intended, peer, current)
    paused = "user" in current.resync_suspended.split(",")
    if peer.pause_sync != paused:
        steps.append(commands.pause_sync(intended.name, peer.node_id, pause=peer.pause_sync))
    standing = current.connection_state == ConnectionState.STAND_ALONE
    if standing and peer.paths and peer.node_id not in held:
        steps.append(commands.connect(intended.name, peer.node_id))
    return steps


def _changes_vote(peer: IntendedPeer, current: ActualPeer) -> bool:
    """Whether a diskless peer that stays diskless gains or loses its vote; see `plan_votes`."""
    votes = not current.bitmap and current.allow_remote_read and current.tie_breaker
    return not peer.bitmap and not current.bitmap and votes != peer.breaks_ties


def _differing_net_options(peer: IntendedPeer, current: ActualPeer) -> list[tuple[str, str]]:
    return [(name, value) for name, value in peer.net if _differs(name, text(current.net, name), value)]


def _differing_device_options(peer: IntendedPeer, current: ActualPeer) -> list[tuple[str, str]]:
    """An option the kernel does not know is left out while we want its default: older kernels lack peer-tiebreaker."""
    known = current.device
    if known is None:
        return [option for option in peer.device if option != ("peer-tiebreaker", "yes")]
    return [
        (name, value)
        for name, value in peer.device
        if not same_value(text(known, name, "yes" if name == "peer-tiebreaker" else ""), value)
    ]


def _plan_paths(intended: Intended, peer: IntendedPeer, current: ActualPeer) -> list[Step]:
    """Additions first; a surplus path that carries the traffic stays until another one does (facts/agent 1.9, N3)."""
    wanted = {(str(path.local), str(path.remote)) for path in peer.paths}
    present = {(str(path.local), str(path.remote)) for path in current.paths}
    steps: list[Step] = [
        commands.new_path(intended.name, peer.node_id, str(path.local), str(path.remote))
        for path in peer.paths
        if _key(path) not in present
    ]
    retained_established = any(path.established for path in current.paths if _key(path) in wanted)
    standing = current.connection_state == ConnectionState.STAND_ALONE
    for path in current.paths:
        if _key(path) in wanted:
            continue
        if standing or (not path.established and (retained_established or _others(current, path))):
            steps.append(commands.del_path(intended.name, peer.node_id, str(path.local), str(path.remote)))
    return steps


def _others(current: ActualPeer, path: ActualPath) -> bool:
    """Whether the connection keeps another path: the last one cannot be deleted while connecting (S15)."""
    return any(other is not path for other in current.paths)


def _key(path: ActualPath | IntendedPath) -> tuple[str, str]:
    return (str(path.local), str(path.remote))


def same_value(actual: str, intended: str) -> bool:
    """Whether two option values mean the same; versions print sizes in different units (`4096s`, `2048k`)."""
    if actual == intended:
        return True
    sizes = [_SIZE.fullmatch(value) for value in (actual, intended)]
    if sizes[0] is None or sizes[1] is None:
        return False
    numbers = [int(size[1]) * _UNITS[size[2].lower()] for size in sizes if size is not None]
    return numbers[0] == numbers[1]


def _differs(name: str, actual: str, intended: str) -> bool:
    if name in COMPARED_WITHOUT_CASE:
        return actual.lower() != intended.lower()
    return actual != intended

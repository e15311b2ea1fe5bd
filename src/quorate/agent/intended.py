"""What shall be on the node: one DRBDResource with its addresses and disk resolved, as frozen values.

Pure. Also the one place that knows the option values the agent enforces (facts/agent 1.7) and how the published q is
written on the module at hand (decision 15).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from quorate.agent.parsers.status import Endpoint
from quorate.api.common import Address
from quorate.api.drbd_resource import UNREACHABLE_QUORUM, DRBDResource, Peer

PREFIX = "sdsrv-"
LINK_DIRECTORY = "/dev/sdsrv"
VOTER_MODE_DYNAMIC = "dynamic"
VOTER_MODE_STATIC = "static"


@dataclass(frozen=True, slots=True)
class Settings:
    """What differs between deployments and kernels; the rest of the agent's values are fixed."""

    voter_mode: str = VOTER_MODE_DYNAMIC
    peer_tiebreaker: bool = True
    """Whether the module has the option; without it a tie-breaker loses its vote by being hidden from the count."""
    verify_alg: str = "crct10dif-pclmul"
    """Must exist in the kernel's crypto list, otherwise new-peer fails (T9)."""
    minimum_port: int = 7000
    maximum_port: int = 7999

    @property
    def static(self) -> bool:
        return self.voter_mode == VOTER_MODE_STATIC


@dataclass(frozen=True, slots=True)
class IntendedPath:
    """A path: our address and the peer's on one network."""

    local: Endpoint
    remote: Endpoint


@dataclass(frozen=True, slots=True)
class IntendedPeer:
    """A connection."""

    node_id: int
    name: str
    net: tuple[tuple[str, str], ...]
    """Options of the connection; part of them is compared in the handshake."""
    device: tuple[tuple[str, str], ...]
    """Options of the peer device; set before connecting (T4)."""
    bitmap: bool
    votes: bool
    """A voter: keeps a bitmap slot and is visible to quorum."""
    breaks_ties: bool = False
    """A tie-breaker whose vote counts: diskless, visible to quorum, not suspended."""
    pause_sync: bool = False
    paths: tuple[IntendedPath, ...] = ()


@dataclass(frozen=True, slots=True)
class IntendedDisk:
    """The backing disk, and whose it must be."""

    device: str
    known_uuid: str
    """Identity from the status; empty before the first attach."""
    new_uuid: str
    """Identity to give to a disk that has none."""


@dataclass(frozen=True, slots=True)
class Intended:
    """The whole."""

    name: str
    node_id: int
    link: str
    up: bool = True
    options: tuple[tuple[str, str], ...] = ()
    """All but the two quorum options."""
    quorum: int = 0
    quorum_text: str = "off"
    """How q is written: a number, or `majority` where a number would have no failover."""
    redundancy: int = 0
    diskless: bool = False
    disk: IntendedDisk | None = None
    keep_disk: bool = False
    """Nothing is known about the disk that shall be attached (its object is gone or going): leave the disk alone."""
    size: int = 0
    primary: bool = False
    voters: int = 0
    peers: tuple[IntendedPeer, ...] = ()
    formerly_known: tuple[int, ...] = ()
    """Node ids reported as peers earlier: those no longer wanted are forgotten even when their connection is gone."""
    non_voting: bool = False

    @property
    def redundancy_text(self) -> str:
        return str(self.redundancy) if self.redundancy else "off"


RESOURCE_OPTIONS = (
    ("auto-promote", "no"),
    ("on-no-quorum", "suspend-io"),
    ("on-no-data-accessible", "suspend-io"),
    ("on-suspended-primary-outdated", "force-secondary"),
)
PEER_DEVICE_OPTIONS = (
    ("c-plan-ahead", "20"),
    ("c-delay-target", "1"),
    ("c-fill-target", "4096s"),
    ("c-max-rate", "625000k"),
    ("c-min-rate", "12500k"),
)


def kernel_name(resource: DRBDResource) -> str:
    """The standard name of the resource in the kernel."""
    return PREFIX + resource.metadata.name


def link_path(resource_name: str) -> str:
    """The stable device name."""
    return f"{LINK_DIRECTORY}/{resource_name}"


def majority(voters: int) -> int:
    return voters // 2 + 1


def compute_intended(
    resource: DRBDResource,
    *,
    name: str,
    up: bool,
    addresses: tuple[Address, ...],
    disk: IntendedDisk | None,
    keep_disk: bool,
    settings: Settings,
) -> Intended:
    """The intended state of one resource; `disk` is None while it is Diskless or its volume is unavailable."""
    spec = resource.spec
    peers = tuple(_peer(resource, peer, addresses, settings) for peer in spec.peers)
    quorum = spec.quorum or 0
    voters = sum(1 for peer in peers if peer.votes) + (1 if _votes(resource) else 0)
    beside_tie_breaker = any(peer.breaks_ties for peer in peers)
    options = RESOURCE_OPTIONS + ((("quorum-dynamic-voters", "no"),) if settings.static else ())
    return Intended(
        name=name,
        node_id=spec.node_id,
        link=link_path(resource.metadata.name),
        up=up,
        options=options,
        quorum=quorum,
        quorum_text=compute_quorum_text(quorum, voters, settings, beside_tie_breaker=beside_tie_breaker),
        redundancy=spec.quorum_minimum_redundancy or 0,
        diskless=spec.type == "Diskless",
        disk=disk,
        keep_disk=keep_disk,
        size=spec.size.value if spec.size else 0,
        primary=spec.role == "Primary",
        voters=voters,
        peers=peers,
        formerly_known=tuple(sorted(peer.node_id for peer in resource.status.peers)),
        non_voting=spec.non_voting,
    )


def compute_quorum_text(quorum: int, voters: int, settings: Settings, *, beside_tie_breaker: bool) -> str:
    """How q is written (decision 15): with dynamic voters a number beside a tie-breaker has no failover (X0a), `majority`
    has (X8a), so there `majority` stands where it means the same number. Everywhere else the number stands: it does not
    sink with the voters, which is what the model checker has checked."""
    if quorum == 0:
        return "off"
    if beside_tie_breaker and not settings.static and voters and quorum == majority(voters):
        return "majority"
    return str(quorum)


def new_device_uuid(resource: DRBDResource) -> str:
    """Identity for a disk that has none: follows from the incarnation of the object, so a crash between writing it to
    the disk and to the status leads to the same value again and no randomness is needed."""
    digest = hashlib.sha256(f"{resource.metadata.uid}/{resource.metadata.name}".encode()).hexdigest()
    return digest[:16].upper().replace("0" * 16, "1" * 16)


def _votes(resource: DRBDResource) -> bool:
    """Whether this node is a voter: with a disk, or meant to get one (a liminal member has a reachable q)."""
    spec = resource.spec
    if spec.non_voting:
        return False
    return spec.type == "Diskful" or (spec.quorum or 0) not in (0, UNREACHABLE_QUORUM)


def _peer(resource: DRBDResource, peer: Peer, addresses: tuple[Address, ...], settings: Settings) -> IntendedPeer:
    local = {address.system_network_name: address.address for address in addresses}
    paths = tuple(
        IntendedPath(
            Endpoint(local[path.system_network_name].ipv4, local[path.system_network_name].port),
            Endpoint(path.address.ipv4, path.address.port),
        )
        for path in peer.paths
        if path.system_network_name in local
    )
    diskful = peer.type == "Diskful"
    visible = peer.allow_remote_read and (settings.peer_tiebreaker or diskful or peer.tie_breaker)
    # A peer that is hidden from the count needs no second way to lose its vote (Q3).
    tie_breaker = peer.tie_breaker or not visible
    return IntendedPeer(
        node_id=peer.node_id,
        name=f"peer-{peer.node_id}",
        net=_net_options(resource, peer, settings, visible=visible),
        device=(("bitmap", _yes(diskful)), ("peer-tiebreaker", _yes(tie_breaker)), *PEER_DEVICE_OPTIONS),
        bitmap=diskful,
        votes=diskful and visible,
        breaks_ties=not diskful and visible and peer.tie_breaker,
        pause_sync=peer.pause_sync,
        paths=paths,
    )


def _net_options(
    resource: DRBDResource, peer: Peer, settings: Settings, *, visible: bool
) -> tuple[tuple[str, str], ...]:
    options = [("protocol", peer.protocol)]
    if peer.shared_secret:
        options.append(("shared-secret", peer.shared_secret.reveal()))
    if peer.shared_secret_alg:
        options.append(("cram-hmac-alg", peer.shared_secret_alg.lower()))
    options += [
        ("rr-conflict", "retry-connect"),
        ("verify-alg", settings.verify_alg),
        ("allow-two-primaries", _yes(resource.spec.allow_two_primaries)),
        ("allow-remote-read", _yes(visible)),
    ]
    return tuple(options)


def _yes(value: bool) -> str:
    return "yes" if value else "no"

"""What the configuration commands of `drbdsetup` do to one node: objects, options, peers and paths.

Commands that concern other nodes too (roles, connections, disks beside connected peers) are in `operations.py`.
Refusals come in the order the recordings show (S15).
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Final

from quorate.simulator import generations
from quorate.simulator import options as tables
from quorate.simulator.change import Change
from quorate.simulator.errors import Refusal
from quorate.simulator.events import (
    connection_line,
    device_line,
    identity,
    path_identity,
    path_line,
    peer_line,
    resource_line,
)
from quorate.simulator.kernel import Kernel, connection_of
from quorate.simulator.metadata import MAX_NODES
from quorate.simulator.model import Connection, Path, PeerVolume, Resource, Volume
from quorate.simulator.options import Option, OptionError, Value, compute_defaults
from quorate.simulator.states import Disk, Link, Role

_NAME: Final = re.compile(r"[0-9A-Za-z+._-]+\Z")
_BAD_NAME: Final = "invalid name (strict_names=1 allows only [0-9A-Za-z+._-])"
_MINOR_MAX: Final = (1 << 20) - 1
_VOLUME_MAX: Final = 65535
_DIGESTS: Final = frozenset({"", "md5", "sha1", "sha256", "sha384", "sha512", "crc32c", "crct10dif-pclmul"})


def merge(
    table: Mapping[str, Option], now: Mapping[str, Value], given: Mapping[str, Value], *, reset: bool
) -> dict[str, Value]:
    """Options not named keep their value; `--set-defaults` resets them (S12)."""
    start = compute_defaults(table) if reset else dict(now)
    return {**start, **given}


def check_name(name: str) -> None:
    if name == "all" or _NAME.match(name) is None:
        raise Refusal(162, _BAD_NAME)


def new_resource(kernel: Kernel, name: str, node_id: int, given: Mapping[str, Value]) -> Resource:
    """An existing name is silently fine, whatever the node id (S15)."""
    existing = kernel.resources.get(name)
    if existing is not None:
        return existing
    check_name(name)
    if not 0 <= node_id < MAX_NODES:
        raise Refusal(162)
    resource = Resource(name, node_id, kernel.node)
    resource.options.update(given)
    kernel.resources[name] = resource
    kernel.announce(f"create {resource_line(resource)}")
    return resource


def resource_options(kernel: Kernel, resource: Resource, given: Mapping[str, Value], *, reset: bool) -> None:
    """Stored in any case; a Primary that would lose its quorum keeps the flag until its next loss (S12, X7)."""
    before = dict(resource.options)
    resource.options = merge(tables.RESOURCE, resource.options, given, reset=reset)
    if any(before[name] != resource.options[name] for name in ("quorum", "on-no-quorum")):
        change = Change(resource, "resource-options")
        try:
            kernel.commit(change, recalculate=True)
        except Refusal:
            return


def del_resource(kernel: Kernel, resource: Resource) -> None:
    if resource.connections:
        raise Refusal(125)
    if resource.volumes:
        raise Refusal(159)
    del kernel.resources[resource.name]
    kernel.announce(f"destroy {identity(resource)}")


def rename_resource(kernel: Kernel, resource: Resource, name: str) -> None:
    taken = f"Cannot rename to {name}: a resource with that name already exists\n"
    if name == "all" or _NAME.match(name) is None:
        raise Refusal(162, taken)  # the kernel words every bad name like a taken one (S16)
    if name in kernel.resources:
        raise Refusal(174, taken)
    kernel.announce(f"rename resource name:{resource.name} new_name:{name}")
    del kernel.resources[resource.name]
    resource.name = name
    kernel.resources[name] = resource


def new_minor(kernel: Kernel, resource: Resource, minor: int, number: int, given: Mapping[str, Value]) -> Volume:
    if not 0 <= minor <= _MINOR_MAX:
        raise Refusal(162, "requested minor out of range")
    if not 0 <= number <= _VOLUME_MAX:
        raise Refusal(162, "requested volume id out of range")
    if minor in kernel.minors or number in resource.volumes:
        raise Refusal(161)
    volume = Volume(resource, number, minor)
    volume.options.update({name: value for name, value in given.items() if name != "diskless"})
    volume.options["diskless"] = "yes" if given.get("diskless") is True else "no"
    volume.quorum = resource.options["quorum"] == "off"
    resource.volumes[number] = volume
    kernel.minors[minor] = volume
    kernel.announce(f"create {device_line(volume)}")
    for connection in resource.connections.values():
        peer = PeerVolume(connection, volume)
        connection.peer_volumes[number] = peer
        kernel.announce(f"create {peer_line(peer)}")
    return volume


def del_minor(kernel: Kernel, volume: Volume) -> None:
    if volume.disk is not Disk.DISKLESS:
        raise Refusal(160)
    resource = volume.resource
    for connection in resource.connections.values():
        peer = connection.peer_volumes.pop(volume.number, None)
        if peer is not None:
            kernel.announce(f"destroy {identity(peer)}")
    del resource.volumes[volume.number]
    del kernel.minors[volume.minor]
    kernel.freed.discard(volume.minor)
    kernel.announce(f"destroy {identity(volume)}")


def _check_peer_id(resource: Resource, peer_id: int) -> None:
    if not 0 <= peer_id < MAX_NODES:
        raise Refusal(162, "peer node id out of range")
    if peer_id == resource.node_id:
        raise Refusal(162, "peer node id cannot be my own node id")


def _check_digests(net: Mapping[str, Value]) -> None:
    algorithm = str(net["cram-hmac-alg"])
    if algorithm not in _DIGESTS:
        raise Refusal(120, f"failed to allocate hmac({algorithm}) for hmac\n")
    if str(net["verify-alg"]) not in _DIGESTS:
        raise Refusal(146, f"failed to allocate {net['verify-alg']} for verify\n")


def new_peer(kernel: Kernel, resource: Resource, peer_id: int, given: Mapping[str, Value]) -> Connection:
    _check_peer_id(resource, peer_id)
    if peer_id in resource.connections:
        raise Refusal(162, f"Connection for peer node id {peer_id} already exists")
    if "_name" not in given:
        raise Refusal(126, "required attribute missing")
    check_name(str(given["_name"]))
    if any(connection.name == given["_name"] for connection in resource.connections.values()):
        raise Refusal(174, "name already exists")
    connection = Connection(resource, peer_id)
    connection.net.update(given)
    _check_digests(connection.net)
    for number, volume in resource.volumes.items():
        peer = PeerVolume(connection, volume)
        connection.peer_volumes[number] = peer
        _recall_peer(volume, peer)
    resource.connections[peer_id] = connection
    kernel.announce(f"create {connection_line(connection)}")
    for peer in connection.peer_volumes.values():
        kernel.announce(f"create {peer_line(peer)}")
    return connection


def remove_peer(kernel: Kernel, connection: Connection) -> None:
    """The object goes: paths, peer devices, then the connection itself."""
    for path in connection.paths:
        kernel.announce(f"destroy {path_identity(connection, path)}")
    for peer in connection.peer_volumes.values():
        kernel.announce(f"destroy {identity(peer)}")
    del connection.resource.connections[connection.peer_id]
    for path in connection.paths:
        _release_endpoints(kernel, connection.resource, path)
    kernel.announce(f"destroy {identity(connection)}")


def _release_endpoints(kernel: Kernel, resource: Resource, gone: Path) -> None:
    """An endpoint may serve several peers of one resource; it is free when the last path with it is gone."""
    left = [path for other in resource.connections.values() for path in other.paths]
    if not any(path.local == gone.local for path in left):
        kernel.endpoints.pop(gone.local, None)
    if not any(path.remote == gone.remote for path in left):
        kernel.remotes.pop(gone.remote, None)


def _recall_peer(volume: Volume, peer: PeerVolume) -> None:
    """A disk remembers a peer it knew: its slot, and that it was outdated (S13, S15 #86)."""
    if volume.backing is None:
        return
    entry = volume.backing.metadata.peers[peer.connection.peer_id]
    peer.slot = entry.slot
    if entry.outdated:
        peer.disk = Disk.OUTDATED


def net_options(kernel: Kernel, connection: Connection, given: Mapping[str, Value], *, reset: bool) -> None:
    merged = merge(tables.NET, connection.net, given, reset=reset)
    merged["_name"] = connection.net["_name"]
    both = connection.resource.role is Role.PRIMARY and connection.peer_role is Role.PRIMARY
    if both and connection.two_primaries and merged["allow-two-primaries"] is False:
        raise Refusal(164)
    _check_digests(merged)
    connection.net = merged


def peer_device_options(peer: PeerVolume, given: Mapping[str, Value], *, reset: bool) -> None:
    """D16: giving and taking the bitmap slot of a peer."""
    merged = merge(tables.PEER_DEVICE, peer.options, given, reset=reset)
    volume, before, after = peer.volume, peer.wants_bitmap, merged["bitmap"] is True
    if after and not before and volume.backing is not None and not generations.allocate_slot(volume, peer):
        raise Refusal(162, "No bitmap slot available in meta-data")
    if before and not after:
        if volume.disk is not Disk.DISKLESS and peer.disk not in (Disk.DISKLESS, Disk.UNKNOWN):
            raise Refusal(162, "Can not drop the bitmap when both sides have a disk")
        if volume.backing is not None:
            metadata = volume.backing.metadata
            known = metadata.peers[peer.connection.peer_id].exists
            generations.forget(metadata, peer.connection.peer_id, volume.blocks)
            entry = metadata.peers[peer.connection.peer_id]
            entry.exists = known
            entry.bitmap_uuid = 0 if known else entry.bitmap_uuid
        peer.slot = -1
    peer.options = merged


def disk_options(volume: Volume, given: Mapping[str, Value], *, reset: bool) -> None:
    if volume.backing is None:
        raise Refusal(138)
    volume.backing.options = merge(tables.DISK, volume.backing.options, given, reset=reset)


def parse_address(text: str) -> str:
    """`[ipv4:]host[:port]` in the form `ipv4:host:port`; a name that is no address cannot be resolved here."""
    for prefix in ("local:", "peer:"):
        text = text.removeprefix(prefix)
    host, _, port = text.removeprefix("ipv4:").partition(":")
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        raise OptionError(f"can not resolve the hostname: gethostbyname({host}): Host name lookup failure") from None
    return f"ipv4:{host}:{port or 7788}"


def new_path(kernel: Kernel, connection: Connection, local: str, remote: str) -> Path:
    """Inside one resource an endpoint may serve several peers; a pair may exist only once (S15)."""
    resource = connection.resource
    if kernel.endpoints.get(local, resource) is not resource:
        raise Refusal(102)
    if kernel.remotes.get(remote, resource) is not resource:
        raise Refusal(103)
    paths = [path for other in resource.connections.values() for path in other.paths]
    if any(path.local == local and path.remote == remote for path in paths):
        raise Refusal(173)
    path = Path(local, remote)
    connection.paths.append(path)
    kernel.endpoints[local] = kernel.remotes[remote] = resource
    kernel.announce(f"create {path_line(connection, path)}")
    return path


def del_path(kernel: Kernel, connection: Connection, local: str, remote: str) -> Path:
    if len(connection.paths) == 1 and connection.link >= Link.CONNECTING:
        raise Refusal(162, "Can not delete last path, use disconnect first!")
    for path in connection.paths:
        if path.local == local and path.remote == remote:
            if path.established:
                raise Refusal(162, "del_path on transport failed")
            connection.paths.remove(path)
            _release_endpoints(kernel, connection.resource, path)
            kernel.announce(f"destroy {path_identity(connection, path)}")
            return path
    raise Refusal(162, "no such path")


def forget_peer(resource: Resource, peer_id: int) -> None:
    """Idempotent, also for ids never seen; the quorum flag follows at the next state change (S9)."""
    if peer_id in resource.connections:
        raise Refusal(125)
    if not 0 <= peer_id < MAX_NODES:
        raise Refusal(171)
    for volume in resource.volumes.values():
        if volume.backing is not None:
            generations.forget(volume.backing.metadata, peer_id, volume.blocks)


def peer_volume_of(resource: Resource, peer_id: int, number: int) -> PeerVolume:
    found = connection_of(resource, peer_id).peer_volumes.get(number)
    if found is None:
        raise Refusal(162, "unknown volume")
    return found

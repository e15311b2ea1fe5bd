"""`drbdsetup status` and `drbdsetup show` as JSON, from the model's objects (facts/agent 3.1, 3.2).

Keys and their order are those of recorded output. Addresses are `family:ip:port` inside the model and split here.
"""

from __future__ import annotations

from typing import Final

from quorate.simulator import options as tables
from quorate.simulator.blocks import BLOCK
from quorate.simulator.model import Connection, Path, PeerVolume, Resource, Volume
from quorate.simulator.options import section_json
from quorate.simulator.states import SYNCING, Disk, Link

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

KIB: Final = BLOCK // 1024


def status_json(resource: Resource) -> dict[str, Json]:
    quorum = resource.suspended_quorum
    return {
        "name": resource.name,
        "node-id": resource.node_id,
        "role": str(resource.role),
        "suspended": resource.suspended_user or resource.suspended_no_data or quorum,
        "suspended-user": resource.suspended_user,
        "suspended-no-data": resource.suspended_no_data,
        "suspended-fencing": False,
        "suspended-quorum": quorum,
        "force-io-failures": resource.fail_io,
        "write-ordering": "flush" if resource.ordered else "none",
        "devices": [_device(volume) for _, volume in sorted(resource.volumes.items())],
        "connections": [_connection(c) for c in sorted(resource.connections.values(), key=lambda c: c.name)],
    }


def _device(volume: Volume) -> dict[str, Json]:
    return {
        "volume": volume.number,
        "minor": volume.minor,
        "disk-state": str(volume.disk),
        "client": volume.disk is Disk.DISKLESS and volume.intentional_diskless,
        "open": volume.open,
        "quorum": volume.quorum,
        "size": volume.blocks * KIB,
        "read": volume.read,
        "written": volume.written,
        "al-writes": volume.log_writes,
        "bm-writes": volume.bitmap_writes,
        "upper-pending": 0,
        "lower-pending": 0,
    }


def _connection(connection: Connection) -> dict[str, Json]:
    peers = sorted(connection.peer_volumes.items())
    return {
        "peer-node-id": connection.peer_id,
        "name": connection.name,
        "connection-state": str(connection.link),
        "congested": False,
        "peer-role": str(connection.peer_role),
        "tls": False,
        "ap-in-flight": 0,
        "rs-in-flight": 0,
        "paths": [_path(path, established=True) for path in connection.paths],
        "peer_devices": [_peer_device(peer) for _, peer in peers],
    }


def address_json(address: str) -> dict[str, Json]:
    family, host, port = address.split(":")
    return {"address": host, "port": int(port), "family": family}


def _path(path: Path, *, established: bool) -> dict[str, Json]:
    value: dict[str, Json] = {"this_host": address_json(path.local), "remote_host": address_json(path.remote)}
    if established:
        value["established"] = path.established
    return value


def compute_pauses(peer: PeerVolume) -> str:
    words = (("user", peer.paused_by_user), ("peer", peer.paused_by_peer), ("dependency", peer.paused_by_dependency))
    return ",".join(word for word, held in words if held) or "no"


def _peer_device(peer: PeerVolume) -> dict[str, Json]:
    dirty, blocks = len(peer.out_of_sync) if peer.out_of_sync is not None else 0, peer.volume.blocks
    syncing = peer.replication in SYNCING and dirty > 0  # in every recording: details exactly while blocks are left
    value: dict[str, Json] = {
        "volume": peer.volume.number,
        "replication-state": str(peer.replication),
        "peer-disk-state": str(peer.disk),
        "peer-client": not peer.wants_bitmap,
        "resync-suspended": compute_pauses(peer),
        "received": peer.received,
        "sent": peer.sent,
        "out-of-sync": dirty * KIB,
        "pending": 0,
        "unacked": 0,
        "has-sync-details": syncing,
        "has-online-verify-details": False,
        "percent-in-sync": round(100.0 * (1 - dirty / blocks), 2) if blocks else 0.0,
    }
    if syncing:
        total = peer.sync_total
        value["rs-total"] = total * (BLOCK // 512)
        value["percent-resync-done"] = round(100.0 * (total - min(dirty, total)) / total, 2) if total else 100.0
    return value


def show_json(resource: Resource, absent: frozenset[str]) -> dict[str, Json]:
    """`absent`: options the module of this machine does not know."""
    value: dict[str, Json] = {
        "resource": resource.name,
        "options": dict(section_json(tables.RESOURCE, resource.options, absent)),
        "_this_host": {
            "node-id": resource.node_id,
            "volumes": [_show_volume(volume, absent) for _, volume in sorted(resource.volumes.items())],
        },
    }
    if resource.connections:
        value["connections"] = [_show_connection(connection, absent) for connection in resource.connections.values()]
    return value


def _show_volume(volume: Volume, absent: frozenset[str]) -> dict[str, Json]:
    value: dict[str, Json] = {"volume_nr": volume.number, "device_minor": volume.minor}
    disk: dict[str, Json] = {}
    if volume.backing is not None:
        value["backing-disk"] = volume.backing.path
        value["meta-disk"] = "internal"
        disk.update(section_json(tables.DISK, volume.backing.options, absent))
    disk.update(section_json(tables.DEVICE, volume.options, absent))
    value["disk"] = disk  # utils 9.34 print the word "none" under the same key first; a parser keeps the object (T10)
    return value


def _show_connection(connection: Connection, absent: frozenset[str]) -> dict[str, Json]:
    value: dict[str, Json] = {"paths": [_path(path, established=False) for path in connection.paths]}
    if connection.link is Link.STAND_ALONE:
        value["_is_standalone"] = True
    value["_cstate"] = str(connection.link)
    value["net"] = dict(section_json(tables.NET, connection.net, absent))
    value["volumes"] = [
        {"volume_nr": number, "disk": dict(section_json(tables.PEER_DEVICE, peer.options, absent))}
        for number, peer in sorted(connection.peer_volumes.items())
    ]
    value["_peer_node_id"] = connection.peer_id
    return value

"""`drbdsetup status` and `drbdsetup show` as text for people; words and their order as recorded (S1, S2, S3, S7, S9c).

Plain `status` shows only what is out of the ordinary, `--verbose` everything, `--statistics` the counters as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from quorate.simulator import options as tables
from quorate.simulator.events import compute_suspension
from quorate.simulator.model import Connection, PeerVolume, Resource, Volume
from quorate.simulator.options import Option, Value, changed, render_json, without
from quorate.simulator.states import SYNCING, Disk, Link, Replication
from quorate.simulator.status import KIB, compute_pauses

_WIDTH: Final = 84


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _wrap(indent: int, words: Iterable[str]) -> str:
    """One line, continued with a deeper indent where it would get too long."""
    lines, current = list[str](), " " * indent
    for word in words:
        extended = f"{current}{word}" if not current.strip() else f"{current} {word}"
        if len(extended) > _WIDTH and current.strip():
            lines.append(current)
            extended = " " * (indent + 4) + word
        current = extended
    return "".join(f"{line}\n" for line in (*lines, current) if line.strip())


# --- status ------------------------------------------------------------------------------------------------------


def status_text(resource: Resource, *, verbose: bool, statistics: bool) -> str:
    words = [resource.name]
    suspended = compute_suspension(resource)
    words += [f"node-id:{resource.node_id}"] if verbose else []
    words += [f"role:{resource.role}"]
    words += [f"suspended:{suspended}"] if verbose or suspended != "no" else []
    words += [f"force-io-failures:{_yes(resource.fail_io)}"] if verbose or resource.fail_io else []
    text = _wrap(0, words)
    text += _wrap(4, [f"write-ordering:{'flush' if resource.ordered else 'none'}"]) if statistics else ""
    for _, volume in sorted(resource.volumes.items()):
        text += _device(volume, verbose=verbose, statistics=statistics, numbered=len(resource.volumes) > 1)
    for connection in sorted(resource.connections.values(), key=lambda each: each.name):
        text += _connection(connection, verbose=verbose, statistics=statistics)
    return text


def _device(volume: Volume, *, verbose: bool, statistics: bool, numbered: bool) -> str:
    waiting = volume.resource.suspended and volume.open
    words = [f"volume:{volume.number}"] if verbose or numbered else []
    words += [f"minor:{volume.minor}"] if verbose else []
    words += [f"disk:{volume.disk}"]
    client = volume.disk is Disk.DISKLESS and volume.intentional_diskless
    words += [f"client:{_yes(client)}"] if volume.disk is Disk.DISKLESS and (client or verbose) else []
    attached = volume.backing is not None and volume.disk > Disk.DETACHING
    words += [f"backing_dev:{volume.backing.path if volume.backing and attached else 'none'}"] if verbose else []
    words += [f"quorum:{_yes(volume.quorum)}"] if verbose or not volume.quorum else []
    words += [f"open:{_yes(volume.open)}"]
    words += ["blocked:upper"] if waiting and not statistics else []
    text = _wrap(2, words)
    if statistics:
        counters = {
            "size": volume.blocks * KIB,
            "read": volume.read,
            "written": volume.written,
            "al-writes": volume.log_writes,
            "bm-writes": volume.bitmap_writes,
            "upper-pending": int(waiting),
            "lower-pending": 0,
        }
        rest = [*(f"{name}:{value}" for name, value in counters.items()), "al-suspended:no"]
        text += _wrap(6, [*rest, f"blocked:{'upper' if waiting else 'no'}"])
    return text


def _connection(connection: Connection, *, verbose: bool, statistics: bool) -> str:
    connected = connection.link is Link.CONNECTED
    words = [connection.name]
    words += [f"node-id:{connection.peer_id}"] if verbose else []
    words += [f"connection:{connection.link}"] if verbose or not connected else []
    words += [f"role:{connection.peer_role}"] if verbose or connected else []
    words += ["tls:no", "congested:no"] if verbose else []
    words += ["ap-in-flight:0", "rs-in-flight:0"] if statistics else []
    text = _wrap(2, words)
    numbered = len(connection.peer_volumes) > 1
    for _, peer in sorted(connection.peer_volumes.items()):
        text += _peer(peer, verbose=verbose, statistics=statistics, numbered=numbered)
    return text


def _peer(peer: PeerVolume, *, verbose: bool, statistics: bool, numbered: bool) -> str:
    if peer.replication is Replication.OFF and not verbose and peer.disk is Disk.UNKNOWN:
        return ""
    dirty = len(peer.out_of_sync) if peer.out_of_sync is not None else 0
    words = [f"volume:{peer.volume.number}"] if verbose or numbered else []
    words += [f"replication:{peer.replication}"] if verbose or peer.replication is not Replication.ESTABLISHED else []
    words += [f"peer-disk:{peer.disk}"]
    words += ["peer-client:yes"] if not peer.wants_bitmap else []
    if peer.replication in SYNCING and peer.sync_total:
        words += [f"done:{100.0 * (peer.sync_total - min(dirty, peer.sync_total)) / peer.sync_total:.2f}"]
    pauses = compute_pauses(peer)
    words += [f"resync-suspended:{pauses}"] if verbose or pauses != "no" else []
    text = _wrap(4, words)
    if statistics:
        counters = {
            "received": peer.received,
            "sent": peer.sent,
            "out-of-sync": dirty * KIB,
            "pending": 0,
            "unacked": 0,
        }
        text += _wrap(8, (f"{name}:{value}" for name, value in counters.items()))
    return text


# --- show --------------------------------------------------------------------------------------------------------


def show_text(resource: Resource, absent: frozenset[str], *, defaults: bool) -> str:
    lines = [f'resource "{resource.name}" {{']
    lines += _section(1, "options", without(tables.RESOURCE, absent), resource.options, defaults=defaults)
    lines += ["    _this_host {", f"        node-id\t\t\t{resource.node_id};"]
    for number, volume in sorted(resource.volumes.items()):
        lines += [f"        volume {number} {{", f"            device\t\t\tminor {volume.minor};"]
        if volume.backing is not None:
            lines += [f'            disk\t\t\t"{volume.backing.path}";', "            meta-disk\t\t\tinternal;"]
            lines += _section(3, "disk", without(tables.DISK, absent), volume.backing.options, defaults=defaults)
        elif volume.intentional_diskless:
            lines += ["            disk\t\t\tnone;"]
        lines += ["        }"]
    lines += ["    }"]
    for connection in resource.connections.values():
        lines += _show_connection(connection, absent, defaults=defaults)
    return "\n".join([*lines, "}"]) + "\n"


def _show_connection(connection: Connection, absent: frozenset[str], *, defaults: bool) -> list[str]:
    lines = ["    connection {", f"        _peer_node_id {connection.peer_id};"]
    for path in connection.paths:
        local, remote = (address.replace(":", " ", 1) for address in (path.local, path.remote))
        lines += [
            "        path {",
            f"            _this_host {local};",
            f"            _remote_host {remote};",
            "        }",
        ]
    lines += [f"        _cstate {connection.link};"]
    lines += _section(2, "net", tables.NET, connection.net, defaults=defaults)
    for number, peer in sorted(connection.peer_volumes.items()):
        inner = _section(3, "disk", without(tables.PEER_DEVICE, absent), peer.options, defaults=defaults)
        lines += [f"        volume {number} {{", *inner, "        }"] if inner else []
    return [*lines, "    }"]


def _section(
    depth: int, title: str, table: Mapping[str, Option], values: Mapping[str, Value], *, defaults: bool
) -> list[str]:
    """The options that differ from their defaults; all of them with `--show-defaults`."""
    indent = "    " * depth
    shown = [(option, values[name]) for name, option in table.items()] if defaults else changed(table, values)
    lines = [f"{indent}    {_assignment(option, value)}" for option, value in shown]
    return [f"{indent}{title} {{", *lines, f"{indent}}}"] if lines else []


def _assignment(option: Option, value: Value) -> str:
    text = _yes(value) if isinstance(value, bool) else render_json(option, value)
    quoted = f'"{text}"' if isinstance(option.default, str) and not option.choices else str(text)
    remark = f" # {option.remark}" if option.remark else ""
    return f"{option.name.ljust(16)}\t{quoted};{remark}"

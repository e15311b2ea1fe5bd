"""Parsers against excerpts of recordings, and against every recording when they lie beside the repository."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import pytest

from quorate.agent.parsers import ParseError
from quorate.agent.parsers.events import Event, parse_endpoint, parse_event
from quorate.agent.parsers.lvm_reports import parse_lvs, parse_pvs, parse_vgs
from quorate.agent.parsers.metadata import Metadata, classify_probe, parse_device_uuid, parse_dump
from quorate.agent.parsers.show import flag, parse_show, text
from quorate.agent.parsers.status import parse_status
from quorate.simulator.lvm import Lvm
from quorate.simulator.result import Result

FIXTURES = Path(__file__).parent / "fixtures"
RECORDINGS = Path(__file__).parents[3] / "shared" / "drbd-transcripts"


def fixture(name: str) -> str:
    return (FIXTURES / name).read_text()


# --- status ------------------------------------------------------------------------------------------------------


def test_status_of_a_primary_that_is_a_sync_source() -> None:
    (resource,) = parse_status(fixture("status-sync-source.json"))
    assert (resource.name, resource.node_id, resource.role, resource.suspended) == ("r0", 0, "Primary", False)
    (device,) = resource.devices
    assert (device.minor, device.disk_state, device.open, device.quorum, device.size) == (
        1000,
        "UpToDate",
        False,
        True,
        40912,
    )
    target = resource.connections[1]
    assert (target.peer_node_id, target.connection_state, target.peer_role) == (2, "Connected", "Secondary")
    assert target.paths[0].established
    assert str(target.paths[0].remote_host) == "10.1.0.12:7000"
    (peer,) = target.peer_devices
    assert (peer.replication_state, peer.peer_disk_state, peer.out_of_sync) == ("SyncSource", "Inconsistent", 3584)
    assert (peer.percent_in_sync, peer.percent_resync_done) == (91.24, 12.5)


def test_status_without_the_keys_of_newer_tools() -> None:
    old = '[{"name":"r","node-id":1,"role":"Secondary","devices":[{"volume":0,"minor":3,"disk-state":"UpToDate"}]}]'
    (resource,) = parse_status(old)
    assert resource.devices[0].open is None
    assert resource.connections == ()


@pytest.mark.parametrize("text_", ["", "[]", "[\n]\n"])
def test_nothing_configured_is_an_empty_list(text_: str) -> None:
    assert parse_status(text_) == ()
    assert parse_show(text_) == ()


def test_text_that_is_not_json_is_an_error_and_not_an_empty_node() -> None:
    with pytest.raises(ParseError):
        parse_status("# No currently configured DRBD found.")
    with pytest.raises(ParseError):
        parse_show('[{"resource": "r0"}]')


# --- show --------------------------------------------------------------------------------------------------------


def test_show_of_a_diskful_node_beside_a_tie_breaker() -> None:
    (config,) = parse_show(fixture("show-beside-tie-breaker.json"))
    assert text(config.options, "quorum") == "majority"
    assert not flag(config.options, "auto-promote", True)
    (volume,) = config.this_host.volumes
    assert (volume.device_minor, volume.backing_disk, volume.meta_disk) == (1000, "/dev/vg/r0", "internal")
    assert text(volume.disk_options, "rs-discard-granularity") == "0"
    diskful, tie_breaker = config.connections
    assert (diskful.peer_node_id, diskful.cstate) == (1, "Connected")
    assert flag(diskful.volumes[0].disk, "bitmap", True)
    assert not flag(tie_breaker.volumes[0].disk, "bitmap", True)
    assert flag(tie_breaker.volumes[0].disk, "peer-tiebreaker", False)


def test_two_disk_keys_of_an_intentionally_diskless_volume() -> None:
    (config,) = parse_show(fixture("show-diskless.json"))
    (volume,) = config.this_host.volumes
    assert volume.backing_disk == ""


def test_a_diskless_volume_of_older_tools_has_a_text_for_its_disk() -> None:
    old = '[{"resource":"r","_this_host":{"node-id":2,"volumes":[{"volume_nr":0,"device_minor":1,"disk":"none"}]}}]'
    (config,) = parse_show(old)
    assert config.this_host.volumes[0].disk_options == {}
    assert config.connections == ()


# --- events ------------------------------------------------------------------------------------------------------


def test_a_change_line_with_a_timestamp() -> None:
    line = (
        "2026-11-16T01:55:48.067807+00:00 change peer-device name:r0 peer-node-id:1 conn-name:n1 volume:0"
        " replication:Established peer-disk:Inconsistent peer-client:no"
    )
    event = parse_event(line)
    assert event is not None
    assert (event.verb, event.object, event.resource) == ("change", "peer-device", "r0")
    assert event.get("replication") == "Established"


def test_endpoints_keep_their_inner_colons() -> None:
    event = parse_event(
        "create path name:r0 peer-node-id:1 conn-name:n1 local:ipv4:10.1.0.10:7000 peer:ipv4:10.1.0.11:7000"
    )
    assert event is not None
    assert parse_endpoint(event.get("local")) == ("10.1.0.10", 7000)
    assert parse_endpoint("ipv6:[fe80::1]:7000") == ("fe80::1", 7000)
    assert parse_endpoint("nonsense") is None


def test_the_end_of_the_dump() -> None:
    event = parse_event("2026-11-16T01:28:18.992029+00:00 exists -")
    assert event == Event("exists", "-")
    assert Event("exists", "-").ends_dump


@pytest.mark.parametrize(
    "line", ["", "all: module unloaded", "#lab node killed", "change resource", "change resource na"]
)
def test_a_line_that_is_no_event_is_none(line: str) -> None:
    assert parse_event(line) is None


# --- metadata ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (Result(0, "# DRBD meta data dump\n"), Metadata.CLEAN),
        (Result(255, "", 'Found meta data is "unclean", please apply-al first\n'), Metadata.UNCLEAN),
        (Result(1, "", 'Found meta data is "unclean", please apply-al first\n'), Metadata.UNCLEAN),
        (Result(255, "", "No valid meta data found\n"), Metadata.NONE),
        (Result(1, "", "No valid meta data found\n"), Metadata.NONE),
        (Result(20, "Operation canceled.\n", "open(/dev/vg/r0) failed: Device or resource busy\n"), Metadata.BUSY),
    ],
)
def test_probe_answers_of_both_generations_of_the_tools(result: Result, expected: Metadata) -> None:
    assert classify_probe(result) is expected


def test_an_unknown_probe_answer_never_counts_as_no_metadata() -> None:
    with pytest.raises(ParseError):
        classify_probe(Result(20, "", "open(/dev/vg/r0) failed: No such file or directory\n"))


def test_dump_and_device_uuid() -> None:
    dump = parse_dump(fixture("dump-md.txt"))
    assert (dump.node_id, dump.current_uuid, dump.device_uuid, dump.max_peers) == (0, "478D0FE4A990A2E4", "", 7)
    assert dump.known_peers == ()
    assert parse_device_uuid("some remark\n1234567890ABCDEF\n") == "1234567890ABCDEF"
    assert parse_device_uuid("0000000000000000\n") == ""
    with pytest.raises(ParseError):
        parse_device_uuid("nothing\n")


# --- LVM ---------------------------------------------------------------------------------------------------------


def test_lvm_reports_of_the_model_parse() -> None:
    lvm = Lvm("n0")
    lvm.add_group("vg", 400 * 1024 * 1024)
    lvm.execute(["lvcreate", "-ay", "-L", "8M", "-T", "vg/pool"])
    lvm.execute(["lvcreate", "-ay", "-T", "vg/pool", "-n", "thin", "-V", "100M", "-y", "--addtag", "a=b"])
    lvm.execute(["lvcreate", "-ay", "-n", "vg/thick", "-L", "8M", "-y"])
    line = "lvs -o +vg_uuid,tags,thin_id,metadata_lv,lv_dm_path --units B --nosuffix --all --reportformat json"
    rows = {row.lv_name: row for row in parse_lvs(lvm.execute(line.split()).stdout)}
    assert rows["thin"].thin
    assert rows["thin"].tags == ("a=b",)
    assert (rows["thin"].size, rows["thin"].used, rows["thin"].pool_lv) == (100 * 1024 * 1024, 0, "pool")
    assert rows["pool"].thin_pool
    assert not rows["thick"].thin
    assert rows["thick"].active
    (group,) = parse_vgs(
        lvm.execute(
            ["vgs", "-o", "+uuid,tags,vg_extent_size", "--units", "B", "--nosuffix", "--reportformat", "json"]
        ).stdout
    )
    assert (group.vg_name, group.extent_size) == ("vg", 4 * 1024 * 1024)
    (disk,) = parse_pvs(
        lvm.execute(["pvs", "-o", "+pv_used,pv_uuid", "--units", "B", "--nosuffix", "--reportformat", "json"]).stdout
    )
    assert disk.vg_name == "vg"


def test_a_broken_report_is_an_error() -> None:
    with pytest.raises(ParseError):
        parse_lvs("  File descriptor 3 leaked on lvm invocation.")


# --- all recordings ----------------------------------------------------------------------------------------------


class Step(msgspec.Struct):
    """The parts of a recorded step that the parsers are tried on."""

    kind: str
    status: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict[str, msgspec.Raw])
    show: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict[str, msgspec.Raw])
    lines: list[tuple[float, str] | str] = msgspec.field(default_factory=list[tuple[float, str] | str])


def recordings() -> Iterator[Step]:
    for path in sorted(RECORDINGS.glob("*.jsonl")):
        with path.open() as lines:
            yield from (msgspec.json.decode(line, type=Step) for line in lines)


def parse_all(nodes: dict[str, msgspec.Raw], parse: Callable[[str], Sequence[object]]) -> int:
    """Parse what is a list; the other values are words of the lab ("same", "node-down")."""
    texts = [bytes(value).decode() for value in nodes.values()]
    lists = [text_ for text_ in texts if text_.startswith("[")]
    for text_ in lists:
        parse(text_)
    return len(lists)


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason="the recordings are not beside this repository")
def test_every_recorded_output_parses() -> None:
    statuses = shows = events = 0
    for step in recordings():
        statuses += parse_all(step.status, parse_status)
        shows += parse_all(step.show, parse_show)
        for entry in step.lines if step.kind == "events2" else ():
            line = entry[1] if isinstance(entry, tuple) else entry
            if not line.startswith("#") and "module unloaded" not in line:
                assert parse_event(line) is not None, line
                events += 1
    assert statuses > 3000
    assert shows > 1000
    assert events > 5000

"""The plan: rows of the documents' tables, and the orders that matter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorate.agent.actual import (
    ActualPath,
    ActualPeer,
    ActualResource,
    ActualVolume,
    DiskProbe,
    Observation,
)
from quorate.agent.commands import Command, redact
from quorate.agent.intended import Intended, IntendedDisk, Settings, compute_intended, compute_quorum_text, kernel_name
from quorate.agent.parsers.metadata import Dump, Metadata
from quorate.agent.parsers.status import Endpoint
from quorate.agent.plan import Plan, compute_plan
from quorate.agent.plan_peers import same_value
from quorate.api.drbd_resource import DRBDResource
from tests.agent.builders import addresses, drbdr, peer

DEVICE = "/dev/vg/lv"
UUID = "00000000000000A1"
NAME = "sdsrv-rv-0"
OPTIONS = {
    "auto-promote": False,
    "on-no-quorum": "suspend-io",
    "on-no-data-accessible": "suspend-io",
    "on-suspended-primary-outdated": "force-secondary",
}
DISK_OPTIONS = {"discard-zeroes-if-aligned": True, "rs-discard-granularity": "0"}
NET = {
    "protocol": "C",
    "shared-secret": "secret",
    "cram-hmac-alg": "sha256",
    "rr-conflict": "retry-connect",
    "verify-alg": "crct10dif-pclmul",
    "allow-two-primaries": False,
    "allow-remote-read": True,
}
PEER_OPTIONS = {
    "bitmap": True,
    "peer-tiebreaker": True,
    "c-plan-ahead": "20",
    "c-delay-target": "1",
    "c-fill-target": "4096s",
    "c-max-rate": "625000k",
    "c-min-rate": "12500k",
}


def intended(resource: DRBDResource, *, known_uuid: str = UUID, settings: Settings | None = None) -> Intended:
    diskful = resource.spec.type == "Diskful"
    return compute_intended(
        resource,
        name=kernel_name(resource),
        up=resource.spec.state == "Up",
        addresses=addresses(resource.spec.node_id),
        disk=IntendedDisk(DEVICE, known_uuid, "00000000000000F0") if diskful else None,
        keep_disk=False,
        settings=settings or Settings(),
    )


def actual_peer(node_id: int, **changes: object) -> ActualPeer:
    path = ActualPath(Endpoint("10.0.0.1", 7000), Endpoint(f"10.0.0.{node_id + 1}", 7000), True)
    found = ActualPeer(
        node_id,
        f"peer-{node_id}",
        connection_state="Connected",
        role="Secondary",
        disk_state="UpToDate",
        replication_state="Established",
        paths=(path,),
        net=NET,
        device=PEER_OPTIONS,
    )
    return replace(found, **changes)  # type: ignore[arg-type]


def actual(
    *peers: ActualPeer,
    quorum: str = "32",
    redundancy: str = "32",
    volume: ActualVolume | None = None,
    **changes: object,
) -> ActualResource:
    attached = ActualVolume(
        3, disk_state="UpToDate", size=64 * 1024 * 1024, backing_disk=DEVICE, disk_options=DISK_OPTIONS, open=False
    )
    options = {**OPTIONS, "quorum": quorum, "quorum-minimum-redundancy": redundancy}
    found = ActualResource(NAME, 0, options=options, volume=volume or attached, peers=peers)
    return replace(found, **changes)  # type: ignore[arg-type]


def seen(resource: ActualResource | None, **changes: object) -> Observation:
    return replace(Observation(resource, link="/dev/drbd3", free_minor=3), **changes)  # type: ignore[arg-type]


def verbs(plan: Plan) -> list[str]:
    return [step.verb if isinstance(step, Command) else type(step).__name__ for step in plan.steps]


def lines(plan: Plan) -> list[str]:
    return [str(step) for step in plan.steps]


DETACHED = ActualVolume(3, disk_state="Diskless", open=False)


def test_nothing_to_do_is_an_empty_plan() -> None:
    assert compute_plan(seen(actual()), intended(drbdr(0))).done


def test_bring_up_starts_with_the_resource_and_q_as_a_number() -> None:
    mesh = drbdr(0, peers=[peer(1), peer(2)], quorum=2, redundancy=1)
    plan = compute_plan(Observation(None, free_minor=5), intended(mesh))
    assert lines(plan) == [
        f"drbdsetup new-resource {NAME} 0",
        f"drbdsetup resource-options {NAME} --auto-promote=no --on-no-quorum=suspend-io --on-no-data-accessible=suspend-io"
        " --on-suspended-primary-outdated=force-secondary --quorum=2 --quorum-minimum-redundancy=1",
    ]


@pytest.mark.parametrize("diskful", [True, False])
def test_the_minor_says_whether_the_node_is_diskless_on_purpose(diskful: bool) -> None:
    bare = replace(actual(), volume=None)
    plan = compute_plan(seen(bare, free_minor=7), intended(drbdr(0, diskful=diskful)))
    assert lines(plan)[-1] == f"drbdsetup new-minor {NAME} 7 0" + ("" if diskful else " --diskless")


# --- facts/agent 1.8: metadata and identity ----------------------------------------------------------------------

CLEAN = Dump(0, "1" * 16, "", 7)


@pytest.mark.parametrize(
    ("probe", "known", "expected"),
    [
        (DiskProbe(Metadata.NONE), "", ["create-md 7", "write-dev-uuid 00000000000000F0"]),
        (DiskProbe(Metadata.NONE), UUID, ["create-md 7", f"write-dev-uuid {UUID}"]),
        (DiskProbe(Metadata.UNCLEAN, UUID), UUID, ["apply-al"]),
        (DiskProbe(Metadata.CLEAN, UUID, CLEAN), UUID, [f"attach 3 {DEVICE} {DEVICE} internal", "disk-options"]),
        (DiskProbe(Metadata.UNCLEAN, "00000000000000B2"), UUID, "ForeignDiskDetected"),
        (
            DiskProbe(Metadata.CLEAN, "00000000000000B2", CLEAN),
            "",
            [f"attach 3 {DEVICE} {DEVICE} internal", "disk-options"],
        ),
        (DiskProbe(Metadata.CLEAN, "", CLEAN), UUID, [f"write-dev-uuid {UUID}"]),
        (DiskProbe(Metadata.CLEAN, "", CLEAN), "", ["write-dev-uuid 00000000000000F0"]),
        (DiskProbe(Metadata.CLEAN, UUID, replace(CLEAN, node_id=5)), UUID, "ForeignDiskDetected"),
        (DiskProbe(Metadata.BUSY), UUID, "AttachFailed"),
        (DiskProbe(Metadata.UNREADABLE, error="Input/output error"), UUID, "ReadDevUUIDFailed"),
    ],
)
def test_metadata_rows(probe: DiskProbe, known: str, expected: list[str] | str) -> None:
    plan = compute_plan(seen(actual(volume=DETACHED), probe=probe), intended(drbdr(0), known_uuid=known))
    if isinstance(expected, str):
        assert [problem.reason for problem in plan.problems] == [expected]
        assert not [step for step in lines(plan) if DEVICE in step]
    else:
        assert not plan.problems
        assert len(lines(plan)) == len(expected)
        assert all(want in got for want, got in zip(expected, lines(plan), strict=True))


@pytest.mark.parametrize("state", ["Attaching", "Negotiating", "Detaching", "Failed", "UpToDate"])
def test_attach_is_never_planned_while_either_query_says_attached(state: str) -> None:
    half = ActualVolume(3, disk_state=state, open=False)
    probe = DiskProbe(Metadata.CLEAN, UUID, CLEAN)
    plan = compute_plan(seen(actual(volume=half), probe=probe), intended(drbdr(0)))
    assert "attach" not in verbs(plan)
    assert "detach" not in verbs(plan)


def test_another_disk_is_detached_first_and_nothing_else_happens_to_disks() -> None:
    other = replace(actual().volume or DETACHED, backing_disk="/dev/vg/old")
    plan = compute_plan(seen(actual(volume=other)), intended(drbdr(0)))
    assert lines(plan) == ["drbdsetup detach 3"]


def test_diskful_to_diskless_says_so() -> None:
    plan = compute_plan(seen(actual()), intended(drbdr(0, diskful=False)))
    assert lines(plan) == ["drbdsetup detach 3 --diskless"]


def test_peers_removed_while_the_node_was_down_are_forgotten_after_attach() -> None:
    probe = DiskProbe(Metadata.CLEAN, UUID, replace(CLEAN, known_peers=(1, 2, 4)))
    mesh = drbdr(0, peers=[peer(1)], quorum=2, redundancy=1)
    plan = compute_plan(seen(actual(volume=DETACHED, quorum="2", redundancy="1"), probe=probe), intended(mesh))
    assert verbs(plan)[0] == "attach"
    assert [line for line in lines(plan) if "forget-peer" in line] == [
        f"drbdsetup forget-peer {NAME} 2",
        f"drbdsetup forget-peer {NAME} 4",
    ]


# --- decision 5: raise before, lower after -----------------------------------------------------------------------


def position(plan: Plan, text: str) -> int:
    return next(index for index, line in enumerate(lines(plan)) if text in line)


def test_a_higher_q_stands_before_peers_are_touched() -> None:
    now = actual(actual_peer(1), quorum="1", redundancy="1")
    plan = compute_plan(seen(now), intended(drbdr(0, peers=[peer(1), peer(2)], quorum=3, redundancy=2)))
    assert lines(plan)[0] == f"drbdsetup resource-options {NAME} --quorum=3 --quorum-minimum-redundancy=2"
    assert position(plan, "--quorum=3") < position(plan, "new-peer")
    assert len([line for line in lines(plan) if "--quorum=" in line]) == 1


def test_a_lower_q_is_written_after_peers_are_gone() -> None:
    now = actual(actual_peer(1), actual_peer(2), quorum="3", redundancy="2")
    plan = compute_plan(seen(now), intended(drbdr(0, peers=[peer(1)], quorum=1, redundancy=1)))
    assert position(plan, "forget-peer") < position(plan, "--quorum=1 --quorum-minimum-redundancy=1")


def test_majority_is_written_last_and_a_raise_stands_as_a_number_before() -> None:
    now = actual(quorum="1", redundancy="1")
    mesh = drbdr(0, peers=[peer(1), peer(2, diskful=False)], quorum=2, redundancy=1)
    plan = compute_plan(seen(now), intended(mesh))
    assert position(plan, "--quorum=2") < position(plan, "new-peer") < position(plan, "--quorum=majority")


TIE = {"device": {**PEER_OPTIONS, "bitmap": False}, "disk_state": "Diskless"}


def test_majority_is_pinned_to_a_number_before_a_voter_goes() -> None:
    now = actual(actual_peer(1), actual_peer(2), actual_peer(3, **TIE), quorum="majority", redundancy="1")
    mesh = drbdr(0, peers=[peer(1), peer(3, diskful=False)], quorum=2, redundancy=1)
    plan = compute_plan(seen(now), intended(mesh))
    assert position(plan, "--quorum=2") < position(plan, "disconnect") < position(plan, "--quorum=majority")


def test_a_tie_breaker_loses_its_vote_first_and_regains_it_last() -> None:
    silent = {**TIE, "device": {**PEER_OPTIONS, "bitmap": False, "peer-tiebreaker": False}}
    voting = actual(actual_peer(1), actual_peer(3, **TIE), quorum="majority", redundancy="1")
    suspended = actual(actual_peer(1), actual_peer(3, **silent), quorum="2", redundancy="1")
    off = [peer(1), peer(2), peer(3, diskful=False, tie_breaker=False)]
    lost = compute_plan(seen(voting), intended(drbdr(0, peers=off, quorum=2, redundancy=1)))
    assert lines(lost)[:2] == [
        f"drbdsetup resource-options {NAME} --quorum=2",
        f"drbdsetup peer-device-options {NAME} 3 0 --peer-tiebreaker=no",
    ]
    assert position(lost, "--peer-tiebreaker=no") < position(lost, "new-peer")
    on = [peer(1), peer(2), peer(3, diskful=False)]
    gained = compute_plan(seen(suspended), intended(drbdr(0, peers=on, quorum=2, redundancy=1)))
    assert lines(gained)[-2:] == [
        f"drbdsetup resource-options {NAME} --quorum=majority",
        f"drbdsetup peer-device-options {NAME} 3 0 --peer-tiebreaker=yes",
    ]


def test_without_the_kernel_option_a_tie_breaker_is_hidden_first() -> None:
    hidden = [peer(1), peer(2), peer(3, diskful=False, remote_read=False)]
    now = actual(actual_peer(1), actual_peer(3, **TIE), quorum="majority", redundancy="1")
    plan = compute_plan(seen(now), intended(drbdr(0, peers=hidden, quorum=2, redundancy=1)))
    assert position(plan, "--allow-remote-read=no") < position(plan, "new-peer")


def test_a_refused_role_waits() -> None:
    now = seen(actual(), held_role=True)
    assert compute_plan(now, intended(drbdr(0, primary=True))).done


def test_the_role_is_the_last_step() -> None:
    plan = compute_plan(seen(actual()), intended(drbdr(0, peers=[peer(1)], quorum=2, redundancy=1, primary=True)))
    assert verbs(plan)[-1] == "primary"
    assert "--force" not in lines(plan)[-1]
    demoted = compute_plan(seen(actual(role="Primary")), intended(drbdr(0)))
    assert lines(demoted) == [f"drbdsetup secondary {NAME}"]


@pytest.mark.parametrize(
    ("quorum", "voters", "mode", "text"),
    [
        (2, 3, "dynamic", "majority"),
        (2, 2, "dynamic", "majority"),
        (3, 3, "dynamic", "3"),
        (1, 2, "dynamic", "1"),
        (32, 3, "dynamic", "32"),
        (0, 3, "dynamic", "off"),
        (2, 3, "static", "2"),
    ],
)
def test_how_q_is_written_beside_a_tie_breaker(quorum: int, voters: int, mode: str, text: str) -> None:
    assert compute_quorum_text(quorum, voters, Settings(voter_mode=mode), beside_tie_breaker=True) == text


def test_without_a_tie_breaker_q_is_a_number() -> None:
    assert compute_quorum_text(2, 3, Settings(), beside_tie_breaker=False) == "2"


def test_static_voters_are_asked_for_on_the_patched_module() -> None:
    settings = Settings(voter_mode="static")
    plan = compute_plan(Observation(None), intended(drbdr(0, quorum=2, redundancy=1), settings=settings))
    assert "--quorum-dynamic-voters=no" in lines(plan)[1]


# --- peers -------------------------------------------------------------------------------------------------------


def test_a_new_peer_has_its_options_before_it_connects() -> None:
    mesh = drbdr(0, peers=[peer(2)], quorum=2, redundancy=1)
    plan = compute_plan(seen(actual(quorum="2", redundancy="1")), intended(mesh))
    assert verbs(plan) == ["new-peer", "peer-device-options", "new-path", "connect"]
    assert "--rr-conflict=retry-connect" in lines(plan)[0]
    assert "--shared-secret=*** " in lines(plan)[0]
    assert "secret" not in lines(plan)[0].replace("--shared-secret=***", "")


ALONE = {"connection_state": "StandAlone", "role": "Unknown", "replication_state": "Off", "paths": ()}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(None, ["new-peer"], id="made first, then looked at"),
        pytest.param("DUnknown", ["peer-device-options", "new-path", "connect"], id="never had a disk"),
        pytest.param("Outdated", ["del-peer", "forget-peer"], id="the metadata remembers its disk"),
        pytest.param("Inconsistent", ["del-peer", "forget-peer"], id="the metadata remembers a partial disk"),
    ],
)
def test_a_diskless_peer_connects_without_a_bitmap(found: str | None, expected: list[str]) -> None:
    """T4 and D16: `bitmap=no` stands before `connect`, and is refused (162) while a disk of the peer is remembered."""
    mesh = drbdr(0, peers=[peer(2, diskful=False, tie_breaker=False)], quorum=1, redundancy=1)
    peers = [] if found is None else [actual_peer(2, **ALONE, disk_state=found)]
    plan = compute_plan(seen(actual(*peers, quorum="1", redundancy="1")), intended(mesh))
    assert verbs(plan) == expected


def test_a_connected_peer_is_not_forgotten_for_its_bitmap() -> None:
    """It still detaches; the option is tried again when it has."""
    mesh = drbdr(0, peers=[peer(2, diskful=False)], quorum=1, redundancy=1)
    current = actual_peer(2, disk_state="Outdated")
    plan = compute_plan(seen(actual(current, quorum="1", redundancy="1")), intended(mesh))
    assert "forget-peer" not in verbs(plan)
    assert "--bitmap=no" in lines(plan)[0]


def test_only_differing_options_are_written() -> None:
    odd = actual_peer(1, net={**NET, "allow-remote-read": False}, device={**PEER_OPTIONS, "c-max-rate": "100k"})
    mesh = drbdr(0, peers=[peer(1)], quorum=2, redundancy=1)
    plan = compute_plan(seen(actual(odd, quorum="2", redundancy="1")), intended(mesh))
    assert lines(plan) == [
        f"drbdsetup net-options {NAME} 1 --allow-remote-read=yes",
        f"drbdsetup peer-device-options {NAME} 1 0 --c-max-rate=625000k",
    ]


def test_a_kernel_without_peer_tiebreaker_is_left_alone_while_the_default_is_wanted() -> None:
    options = {name: value for name, value in PEER_OPTIONS.items() if name != "peer-tiebreaker"}
    mesh = drbdr(0, peers=[peer(1)], quorum=2, redundancy=1)
    now = actual(actual_peer(1, device=options), quorum="2", redundancy="1")
    assert compute_plan(seen(now), intended(mesh)).done


@pytest.mark.parametrize(
    ("state", "held", "connects"),
    [("StandAlone", False, True), ("StandAlone", True, False), ("Connecting", False, False)],
)
def test_connect_only_from_standalone_and_not_too_often(state: str, held: bool, connects: bool) -> None:
    now = actual(actual_peer(1, connection_state=state), quorum="2", redundancy="1")
    observation = seen(now, held_connects=frozenset({1} if held else ()))
    plan = compute_plan(observation, intended(drbdr(0, peers=[peer(1)], quorum=2, redundancy=1)))
    assert ("connect" in verbs(plan)) is connects


def test_a_wrong_path_stays_while_it_carries_the_traffic() -> None:
    wrong = ActualPath(Endpoint("10.0.0.1", 7000), Endpoint("10.0.0.2", 7999), True)
    right = ActualPath(Endpoint("10.0.0.1", 7000), Endpoint("10.0.0.2", 7000), False)
    mesh = intended(drbdr(0, peers=[peer(1)], quorum=2, redundancy=1))

    def plan(*paths: ActualPath) -> list[str]:
        now = actual(actual_peer(1, paths=paths), quorum="2", redundancy="1")
        return [line.removeprefix("drbdsetup ").removesuffix("") for line in lines(compute_plan(seen(now), mesh))]

    assert plan(wrong) == [f"new-path {NAME} 1 10.0.0.1:7000 10.0.0.2:7000"]
    assert plan(wrong, right) == []
    assert plan(replace(wrong, established=False), replace(right, established=True)) == [
        f"del-path {NAME} 1 10.0.0.1:7000 10.0.0.2:7999"
    ]


def test_an_unwanted_peer_is_disconnected_deleted_and_forgotten() -> None:
    now = actual(actual_peer(1), quorum="1", redundancy="1")
    plan = compute_plan(seen(now), intended(drbdr(0, quorum=1, redundancy=1)))
    assert verbs(plan)[:3] == ["disconnect", "del-peer", "forget-peer"]
    forced = compute_plan(seen(now, refused_disconnects=frozenset({1})), intended(drbdr(0, quorum=1, redundancy=1)))
    assert lines(forced)[0] == f"drbdsetup disconnect {NAME} 1 --force"


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [("4096s", "2048k", True), ("625000k", "625000k", True), ("20", "21", False), ("1M", "1024k", True)],
)
def test_values_in_other_units(one: str, other: str, same: bool) -> None:
    assert same_value(one, other) is same


# --- tear-down ---------------------------------------------------------------------------------------------------


def test_tear_down_demotes_unlinks_and_takes_down() -> None:
    plan = compute_plan(seen(actual(role="Primary")), intended(drbdr(0, state="Down")))
    assert verbs(plan) == ["secondary", "RemoveLink", "down"]
    assert compute_plan(Observation(None), intended(drbdr(0, state="Down"))).done


def test_tear_down_waits_for_openers() -> None:
    opened = replace(actual().volume or DETACHED, open=True)
    plan = compute_plan(seen(actual(volume=opened)), intended(drbdr(0, state="Down")))
    assert plan.steps == ()
    assert plan.problems[0].reason == "DownFailed"


def test_a_leftover_with_another_node_id_is_taken_down_first() -> None:
    plan = compute_plan(seen(actual(node_id=4)), intended(drbdr(0)))
    assert verbs(plan) == ["RemoveLink", "down"]


def test_growing_uses_the_published_size() -> None:
    small = replace(actual().volume or DETACHED, size=1024 * 1024)
    plan = compute_plan(seen(actual(volume=small)), intended(drbdr(0)))
    assert lines(plan) == ["drbdsetup resize 3 --size=32768s"]
    during_resync = plan.steps[0]
    assert isinstance(during_resync, Command)
    assert 130 in during_resync.tolerated


def test_secrets_are_hidden_in_both_spellings() -> None:
    assert redact(["--shared-secret", "abc", "--shared-secret=abc"]) == [
        "--shared-secret",
        "***",
        "--shared-secret=***",
    ]

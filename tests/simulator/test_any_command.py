"""Whatever is typed, in whatever order, under whatever faults: an answer with an exit code of the real tools."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quorate.simulator.replay_shell import Shell, Skipped
from tests.simulator.lab import Lab

LINES = """
drbdsetup primary r0
drbdsetup primary r0 --force
drbdsetup secondary r0
drbdsetup secondary r0 --force
drbdsetup down r0
drbdsetup disconnect r0 {peer}
drbdsetup disconnect r0 {peer} --force
drbdsetup connect r0 {peer}
drbdsetup connect r0 {peer} --discard-my-data
drbdsetup del-peer r0 {peer}
drbdsetup forget-peer r0 {peer}
drbdsetup detach 1000
drbdsetup detach 1000 --force
drbdsetup detach 1000 --diskless
drbdsetup attach 1000 /dev/vg/r0 /dev/vg/r0 internal
drbdsetup invalidate 1000
drbdsetup invalidate-remote r0 {peer} 0
drbdsetup verify r0 {peer} 0
drbdsetup outdate 1000
drbdsetup new-current-uuid 1000
drbdsetup new-current-uuid 1000 --clear-bitmap
drbdsetup new-current-uuid 1000 --force-resync
drbdsetup resource-options r0 --quorum=1
drbdsetup resource-options r0 --quorum=3 --quorum-minimum-redundancy=2
drbdsetup resource-options r0 --set-defaults
drbdsetup net-options r0 {peer} --allow-two-primaries=yes
drbdsetup net-options r0 {peer} --verify-alg=crc32c --allow-remote-read=no
drbdsetup peer-device-options r0 {peer} 0 --bitmap=no
drbdsetup peer-device-options r0 {peer} 0 --bitmap=yes
drbdsetup resize 1000
drbdsetup resize 1000 --size=8M --assume-clean
lvextend -L +4M vg/r0
drbdsetup pause-sync r0 {peer} 0
drbdsetup resume-sync r0 {peer} 0
drbdsetup suspend-io 1000
drbdsetup resume-io 1000
dd if=/dev/zero of=/dev/drbd1000 bs=64k count=2 seek=5
dd if=/dev/drbd1000 of=/dev/null bs=64k count=2
drbdsetup status --verbose --statistics
drbdsetup show
drbdsetup events2 --now --statistics
drbdsetup new-resource r0 {node}
drbdsetup new-minor r0 1000 0
drbdsetup new-peer r0 {peer} --_name=n{peer}
drbdsetup new-path r0 {peer} 10.1.0.1{node}:7000 10.1.0.1{peer}:7000
drbdsetup del-path r0 {peer} 10.1.0.1{node}:7000 10.1.0.1{peer}:7000
drbdsetup rename-resource r0 r1
drbdsetup rename-resource r1 r0
drbdsetup get-gi r0 {peer} 0
drbdsetup wait-sync-resource r0 --wfc-timeout=2
drbdsetup del-minor 1000
drbdsetup del-resource r0
drbdmeta --force 1000 v09 /dev/vg/r0 internal apply-al
drbdmeta --force 1000 v09 /dev/vg/r0 internal create-md 2
drbdmeta 1000 v09 /dev/vg/r0 internal dump-md
""".strip().splitlines()
FAULTS = ("cut", "heal", "crash", "fail", "repair")
EXIT_CODES = frozenset({0, 1, 3, 5, 10, 11, 16, 17, 20, 137, 255})


def act(lab: Lab, what: str, node: int, peer: int) -> None:
    match what:
        case "cut":
            lab.cluster.cut(f"n{node}", f"n{peer}")
        case "heal":
            lab.cluster.heal(f"n{node}", f"n{peer}")
        case "crash":
            lab.cluster.crash(f"n{node}")
            lab.wait(2)
            lab.cluster.restart(f"n{node}")
        case _:
            lab.cluster.fail_disk(f"n{node}", "/dev/vg/r0", failed=what == "fail")


STEPS = st.lists(
    st.tuples(
        st.sampled_from((*LINES, *FAULTS)), st.integers(0, 3), st.integers(1, 3), st.sampled_from((0.0, 0.5, 4.0))
    ),
    max_size=40,
)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, quorum=st.sampled_from(("2", "majority", "off")), ties=st.sampled_from(((), (2,))))
def test_every_command_is_answered(
    steps: list[tuple[str, int, int, float]], quorum: str, ties: tuple[int, ...]
) -> None:
    lab = Lab(quorum=quorum, ties=ties)
    shell = Shell(lab.cluster)
    for what, node, distance, pause in steps:
        peer = (node + distance) % 4
        if what in FAULTS:
            act(lab, what, node, peer)
        else:
            outcome = shell.run(f"n{node}", what.format(node=node, peer=peer))
            assert not isinstance(outcome, Skipped)
            assert outcome is None or outcome.exit_code in EXIT_CODES
        lab.wait(pause)
    lab.wait(20)

"""Disks that outlive the process: what is read back is what was there, at a moment between two commits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.simulator.lvm import Lvm
from quorate.simulator.metadata import Metadata
from quorate.simulator.persistence import FILE, DiskJournal, DisksDamaged

MIB = 1 << 20
State = dict[str, tuple[object, ...]]


def now(callback: Callable[[], None]) -> None:
    """Commits are made by the test."""
    del callback


def machine(journal: DiskJournal, name: str = "n1") -> Lvm:
    lvm = Lvm(name)
    journal.adopt(name, lvm)
    if not lvm.state.groups:
        lvm.add_group("vg", 400 * MIB)
        lvm.execute(["lvcreate", "-T", "-L", "200m", "vg/pool"])
    return lvm


def state(lvm: Lvm) -> State:
    """Everything that must survive."""
    found: State = {"": (lvm.state.serial, tuple(lvm.sizes.items()))}
    for group in lvm.state.groups.values():
        found[group.name] = (group.uuid, group.next_thin_id, lvm.state.free_extents(group))
        for volume in group.volumes.values():
            disk, space = volume.disk, volume.space
            found[volume.path] = (
                volume.uuid,
                volume.kind,
                volume.extents,
                volume.tags,
                disk.size if disk is not None else 0,
                disk.contents() if disk is not None else {},
                disk.structures() if disk is not None else {},
                space.used if space is not None else 0,
            )
    return found


def reread(directory: Path) -> State:
    return state(machine(DiskJournal(directory, now)))


Step = tuple[str, int, int]
ACTIONS = ("make", "thin", "remove", "grow", "write", "metadata", "touch", "commit")
STEPS = st.lists(
    st.tuples(st.sampled_from(ACTIONS), st.integers(0, 3), st.integers(1, 40)),
    max_size=40,
)


def perform(lvm: Lvm, step: Step, number: int) -> None:
    action, which, amount = step
    volume = lvm.volume(f"/dev/vg/lv{which}")
    disk = volume.disk if volume is not None else None
    match action:
        case "make":
            lvm.execute(["lvcreate", "-n", f"vg/lv{which}", "-L", "8m"])
        case "thin":
            lvm.execute(["lvcreate", "-T", "-V", "16m", "-n", f"lv{which}", "vg/pool"])
        case "remove":
            lvm.execute(["lvremove", "-y", f"vg/lv{which}"])
        case "grow":
            lvm.execute(["lvextend", "-L", "+4m", f"vg/lv{which}"])
        case "write" if disk is not None:
            disk.write(amount, number + 1)
        case "metadata" if disk is not None:
            disk.put_structure(disk.size - 4096, Metadata(7, node_id=which))
        case "touch" if disk is not None:
            for structure in disk.structures().values():
                assert isinstance(structure, Metadata)
                touch(structure, amount)
        case _:
            pass


def touch(metadata: Metadata, amount: int) -> None:
    """Change it as the model does: in place, in every part."""
    metadata.current = amount << 57
    metadata.remember(amount + 100)
    metadata.members = frozenset({amount % 5, 1})
    metadata.peers[amount % 5].slot = amount % 7
    metadata.bitmaps[amount % 7].add(amount, amount + 3)
    metadata.bitmaps[(amount + 1) % 7] = metadata.bitmaps[amount % 7].copy()


@settings(max_examples=60, deadline=None)
@given(STEPS)
def test_what_was_committed_is_read_back(steps: list[Step]) -> None:
    with TemporaryDirectory() as name:
        directory = Path(name)
        journal = DiskJournal(directory, now)
        lvm = machine(journal)
        journal.start()
        for number, step in enumerate(steps):
            perform(lvm, step, number)
            if step[0] == "commit":
                journal.commit()
        journal.commit()
        assert reread(directory) == state(lvm)
        journal.close()


def test_a_file_cut_at_any_byte_is_an_earlier_moment(tmp_path: Path) -> None:
    """What is written at the start is put in place whole; everything after it may be torn."""
    journal = DiskJournal(tmp_path, now)
    lvm = machine(journal)
    journal.start()
    base = (tmp_path / FILE).stat().st_size
    moments = [state_of_file(tmp_path)]
    for number, step in enumerate(
        (("make", 0, 1), ("metadata", 0, 1), ("write", 0, 3), ("touch", 0, 9), ("remove", 0, 1))
    ):
        perform(lvm, step, number)
        journal.commit()
        moments.append(state_of_file(tmp_path))
    journal.close()
    whole = (tmp_path / FILE).read_bytes()
    seen: list[int] = []
    for end in (*range(base, len(whole), 13), len(whole)):
        (tmp_path / FILE).write_bytes(whole[:end])
        seen.append(moments.index(state_of_file(tmp_path)))
    assert seen == sorted(seen)
    assert sorted(set(seen)) == list(range(len(moments)))


def state_of_file(directory: Path) -> State:
    lvm = Lvm("n1")
    DiskJournal(directory, now).adopt("n1", lvm)
    return state(lvm)


def test_the_file_is_rewritten_when_most_of_it_is_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.simulator.persistence.SMALL", 4096)
    journal = DiskJournal(tmp_path, now)
    lvm = machine(journal)
    perform(lvm, ("make", 0, 1), 0)
    journal.start()
    sizes: list[int] = []
    for number in range(400):
        perform(lvm, ("write", 0, 5), number)
        journal.commit()
        sizes.append((tmp_path / FILE).stat().st_size)
    assert max(sizes) < 8192
    assert any(later < earlier for earlier, later in pairwise(sizes))
    assert reread(tmp_path) == state(lvm)


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"something else")
    with pytest.raises(DisksDamaged, match="does not hold the disks"):
        DiskJournal(tmp_path, now)


def test_a_disk_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = DiskJournal(tmp_path, now)
    lvm = machine(journal)
    perform(lvm, ("make", 0, 1), 0)
    journal.start()
    told: list[OSError] = []
    journal.on_failure = told.append

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.write", full)
    perform(lvm, ("write", 0, 5), 1)
    journal.commit()
    assert [error.strerror for error in told] == ["No space left on device"]

"""The LVM model: what the tools do, refuse and print."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.simulator.blocks import BLOCK, DeviceError
from quorate.simulator.lvm import Lvm
from quorate.simulator.lvm_devices import CHUNK
from quorate.simulator.result import Result

MIB = 1024 * 1024
LVS = "lvs -o +vg_uuid,tags,thin_id,metadata_lv,lv_dm_path --units B --nosuffix --all --reportformat json"


def group(size: int = 400 * MIB) -> Lvm:
    lvm = Lvm("n0")
    lvm.add_group("vg", size)
    return lvm


def run(lvm: Lvm, line: str) -> Result:
    return lvm.execute(line.split())


def ok(lvm: Lvm, line: str) -> str:
    result = run(lvm, line)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def report(lvm: Lvm, line: str, key: str) -> dict[str, dict[str, str]]:
    rows: list[dict[str, str]] = json.loads(ok(lvm, line))["report"][0][key]
    return {row[f"{key}_name"]: row for row in rows}


def volumes(lvm: Lvm) -> dict[str, dict[str, str]]:
    return report(lvm, LVS, "lv")


def free(lvm: Lvm) -> int:
    line = "vgs -o +uuid,tags,shared,vg_attr,vg_extent_size --units B --nosuffix --reportformat json"
    return int(report(lvm, line, "vg")["vg"]["vg_free"])


def test_recorded_texts_are_answered_word_for_word() -> None:
    lvm = group()
    created = run(lvm, "lvcreate -y -Wn -Zn -L 8M -n blank vg")
    assert created == Result(
        0, '  Logical volume "blank" created.\n', "  WARNING: Logical volume vg/blank not zeroed.\n"
    )
    ok(lvm, "lvcreate -ay -n vg/r0 -L 40960k -W y -y")
    assert ok(lvm, "lvextend -L 48M vg/r0") == (
        "  Size of logical volume vg/r0 changed from 40.00 MiB (10 extents) to 48.00 MiB (12 extents).\n"
        "  Logical volume vg/r0 successfully resized.\n"
    )
    lvm.disk("/dev/vg/r0").users += 1
    assert run(lvm, "lvremove -f vg/r0") == Result(5, "", "  Logical volume vg/r0 is used by another device.\n")


def test_thick_volume_takes_and_returns_extents() -> None:
    lvm = group(400 * MIB)
    assert free(lvm) == 400 * MIB
    ok(lvm, "lvm lvcreate -ay -n vg/a -L 102400k -W y -y --contiguous y")
    assert free(lvm) == 300 * MIB
    assert volumes(lvm)["a"]["lv_attr"] == "-wc-a-----"
    device = lvm.device("/dev/vg/a")
    assert device is not None
    assert device.size == 100 * MIB
    ok(lvm, "lvremove /dev/vg/a -y")
    assert free(lvm) == 400 * MIB
    assert lvm.device("/dev/vg/a") is None


def test_sizes_are_rounded_up_to_whole_extents() -> None:
    lvm = group()
    assert ok(lvm, "lvcreate -n vg/a -L 1025k -y").startswith("  Rounding up size to full physical extent 4.00 MiB\n")
    assert volumes(lvm)["a"]["lv_size"] == str(4 * MIB)


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("lvcreate -n vg/a -L 401M -y", 5, 'Volume group "vg" has insufficient free space (99 extents): 101 required.'),
        ("lvcreate -n vg/r -L 4M -y", 5, 'Logical Volume "r" already exists in volume group "vg"'),
        ("lvcreate -n nope/a -L 4M -y", 5, 'Volume group "nope" not found'),
        ("lvextend -L 8M /dev/vg/nope", 5, 'Failed to find logical volume "vg/nope"'),
        ("lvextend -L 4M /dev/vg/r", 5, "New size (1 extents) matches existing size (1 extents)."),
        ("lvremove /dev/vg/nope -y", 5, 'Failed to find logical volume "vg/nope"'),
        ("lvs --nosuch", 3, "unrecognized option"),
        ("lvfrobnicate", 2, "No such command"),
        ("vgcreate vg /dev/other", 5, "A volume group called vg already exists."),
        ("vgremove vg", 5, "still contains"),
    ],
)
def test_refusals_have_the_texts_and_codes_of_the_tools(line: str, code: int, text: str) -> None:
    lvm = group(400 * MIB)
    ok(lvm, "lvcreate -n vg/r -L 4M -y")
    result = run(lvm, line)
    assert result.exit_code == code
    assert text in result.stderr
    assert result.stdout == ""


def test_a_smaller_size_is_refused_and_changes_nothing() -> None:
    lvm = group()
    ok(lvm, "lvcreate -n vg/r -L 8M -y")
    result = run(lvm, "lvextend -L 4M vg/r")
    assert "New size given (1 extents) not larger than existing size (2 extents)" in result.stderr
    assert volumes(lvm)["r"]["lv_size"] == str(8 * MIB)


def thin() -> Lvm:
    lvm = group(400 * MIB)
    ok(lvm, "lvcreate -ay -L 1024k -T vg/pool")
    return lvm


def test_thin_volumes_overcommit_the_pool_until_it_is_full() -> None:
    lvm = thin()
    before = free(lvm)
    for name in ("a", "b"):
        ok(lvm, f"lvcreate -ay -T vg/pool -n {name} -V 102400k -W y -y")
    assert free(lvm) == before
    disk = lvm.disk("/dev/vg/a")
    chunks = 4 * MIB // CHUNK
    for chunk in range(chunks):
        disk.write(chunk * CHUNK // BLOCK, chunk + 1)
    rows = volumes(lvm)
    assert rows["pool"]["data_percent"] == "100.00"
    assert rows["pool"]["lv_attr"] == "twi-aotzD-"
    assert rows["a"]["data_percent"] == "4.00"
    with pytest.raises(DeviceError):
        lvm.disk("/dev/vg/b").write(0, 7)
    assert lvm.disk("/dev/vg/b").read(0) == 0
    refused = run(lvm, "lvcreate -ay -T vg/pool -n c -V 1024k -y")
    assert "Free space in pool vg/pool is above threshold, new volumes are not allowed." in refused.stderr


def test_extending_a_full_pool_lets_writes_pass_again() -> None:
    lvm = thin()
    ok(lvm, "lvcreate -ay -T vg/pool -n a -V 102400k -y")
    disk = lvm.disk("/dev/vg/a")
    for chunk in range(4 * MIB // CHUNK):
        disk.write(chunk * CHUNK // BLOCK, 1)
    ok(lvm, "lvextend -L 8M vg/pool")
    disk.write(90 * MIB // BLOCK, 5)
    assert disk.read(90 * MIB // BLOCK) == 5


def test_erasing_and_removing_give_chunks_back() -> None:
    lvm = thin()
    ok(lvm, "lvcreate -ay -T vg/pool -n a -V 102400k -y")
    disk = lvm.disk("/dev/vg/a")
    for chunk in range(10):
        disk.write(chunk * CHUNK // BLOCK, 1)
    disk.erase(0, 5 * CHUNK // BLOCK)
    assert volumes(lvm)["pool"]["data_percent"] == f"{100 * 5 * CHUNK / (4 * MIB):.2f}"
    ok(lvm, "lvremove /dev/vg/a -y")
    assert volumes(lvm)["pool"]["data_percent"] == "0.00"


def test_a_thin_snapshot_holds_the_contents_of_its_origin() -> None:
    lvm = thin()
    ok(lvm, "lvcreate -ay -T vg/pool -n a -V 102400k -y")
    lvm.disk("/dev/vg/a").write(3, 9)
    ok(lvm, "lvcreate -ay -s -kn -n s vg/a -y --addtag t1")
    lvm.disk("/dev/vg/a").write(3, 10)
    assert lvm.disk("/dev/vg/s").read(3) == 9
    row = volumes(lvm)["s"]
    assert (row["origin"], row["lv_tags"], row["pool_lv"], row["lv_attr"]) == ("a", "t1", "pool", "Vwi-a-tz--")


def test_removing_a_pool_is_refused_while_one_of_its_volumes_is_in_use() -> None:
    lvm = thin()
    ok(lvm, "lvcreate -ay -T vg/pool -n a -V 8M -y")
    lvm.disk("/dev/vg/a").users += 1
    assert run(lvm, "lvremove vg/pool -y").exit_code == 5
    lvm.disk("/dev/vg/a").users -= 1
    ok(lvm, "lvremove vg/pool -y")
    assert lvm.device("/dev/vg/a") is None


def test_hidden_volumes_appear_only_with_all() -> None:
    lvm = thin()
    shown = report(lvm, "lvs --units B --nosuffix --reportformat json", "lv")
    assert list(shown) == ["pool"]
    assert {"[pool_tmeta]", "[pool_tdata]", "[lvol0_pmspare]"} <= set(volumes(lvm))


def test_report_of_one_volume_and_dm_path() -> None:
    lvm = Lvm("n0")
    lvm.add_group("vg-1", 40 * MIB)
    ok(lvm, "lvcreate -n vg-1/rv-0 -L 8M -y")
    rows = report(lvm, "lvs -o +vg_uuid,tags,lv_dm_path --units B --nosuffix --reportformat json /dev/vg-1/rv-0", "lv")
    assert rows["rv-0"]["lv_dm_path"] == "/dev/mapper/vg--1-rv--0"
    assert lvm.device("/dev/mapper/vg--1-rv--0") is lvm.device("/dev/vg-1/rv-0")
    assert run(lvm, "lvs --reportformat json /dev/vg-1/nope").exit_code == 5


def test_groups_are_made_extended_and_removed() -> None:
    lvm = Lvm("n0")
    for disk in ("/dev/sdb", "/dev/sdc"):
        lvm.add_disk(disk, 41 * MIB)
    ok(lvm, "pvcreate /dev/sdb")
    ok(lvm, "vgcreate data /dev/sdb --addtag storage.deckhouse.io/enabled=true")
    ok(lvm, "vgextend data /dev/sdc")
    rows = report(lvm, "vgs -o +uuid,tags --units B --nosuffix --reportformat json", "vg")
    assert rows["data"]["vg_size"] == str(80 * MIB)
    assert rows["data"]["vg_tags"] == "storage.deckhouse.io/enabled=true"
    ok(lvm, "lvcreate -n data/a -l 100%FREE -y")
    disks = report(lvm, "pvs -o +pv_used,pv_uuid,vg_tags,vg_uuid --units B --nosuffix --reportformat json", "pv")
    assert [row["pv_free"] for row in disks.values()] == ["0", "0"]
    lvm.add_disk("/dev/sdc", 81 * MIB)
    ok(lvm, "pvresize /dev/sdc")
    assert report(lvm, "vgs --units B --nosuffix --reportformat json", "vg")["data"]["vg_free"] == str(40 * MIB)
    ok(lvm, "lvremove data/a -y")
    ok(lvm, "vgremove data")
    ok(lvm, "pvremove /dev/sdb")


def test_a_contiguous_volume_needs_one_disk_with_enough_room() -> None:
    lvm = Lvm("n0")
    for disk in ("/dev/sdb", "/dev/sdc"):
        lvm.add_disk(disk, 41 * MIB)
    ok(lvm, "vgcreate data /dev/sdb /dev/sdc")
    assert "contiguous" in run(lvm, "lvcreate -n data/a -L 44M --contiguous y -y").stderr
    ok(lvm, "lvcreate -n data/a -L 44M -y")


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["create", "extend", "remove"]), st.integers(1, 30)))
)
def test_extents_are_conserved(steps: list[tuple[str, str, int]]) -> None:
    lvm = group(100 * MIB)
    for name, what, extents in steps:
        line = {
            "create": f"lvcreate -n vg/{name} -l {extents} -y",
            "extend": f"lvextend -l {extents} vg/{name}",
            "remove": f"lvremove vg/{name} -y",
        }[what]
        run(lvm, line)
        used = sum(int(row["lv_size"]) for row in volumes(lvm).values())
        assert used + free(lvm) == 100 * MIB
        assert free(lvm) >= 0


@pytest.mark.parametrize(
    ("line", "exit_code", "text"),
    [
        ("lvs --noheadings -o lv_name vg", 0, "  r0\n  r1\n"),
        ("lvs --noheadings -o lv_name,vg_name --separator : -S lv_name=r1", 0, "  r1:vg\n"),
        ("lvs --noheadings -o lv_name -O -lv_name vg", 0, "  r1\n  r0\n"),
        ("lvs -o lv_name -S nosuch=1", 3, ""),
        ("lvresize -L 12M vg/r0", 0, "successfully resized"),
        ("lvresize -L 4M vg/r0", 5, ""),
        ("lvrename vg r0 r2", 0, 'Renamed "r0" to "r2"'),
        ("lvrename vg/r0 r1", 5, ""),
        ("lvcreate -y --type thin-pool -L 16M -n pool vg", 0, '"pool" created'),
        ("lvcreate -y --type raid1 -L 16M -n pool vg", 3, ""),
    ],
)
def test_variants_of_command_lines(line: str, exit_code: int, text: str) -> None:
    lvm = Lvm("n0")
    lvm.add_group("vg", 1 << 28)
    for name in ("r0", "r1"):
        assert lvm.execute(["lvcreate", "-y", "-n", name, "-L", "8M", "vg"]).exit_code == 0
    result = lvm.execute(line.split())
    assert (result.exit_code, text in result.stdout) == (exit_code, True), result


def test_a_thin_volume_by_the_name_of_its_pool() -> None:
    lvm = Lvm("n0")
    lvm.add_group("vg", 1 << 28)
    assert lvm.execute(["lvcreate", "-y", "-L", "16M", "-T", "vg/pool"]).exit_code == 0
    assert lvm.execute(["lvcreate", "-y", "-V", "40M", "--thinpool", "pool", "-n", "r0", "vg"]).exit_code == 0
    assert lvm.device("/dev/vg/r0") is not None

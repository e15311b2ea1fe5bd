"""Generations and bitmaps: who is remembered as behind, and what a resync settles."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from quorate.simulator import generations
from quorate.simulator.blocks import MemoryDisk
from quorate.simulator.handshake import Side, Strategy, decide
from quorate.simulator.metadata import JUST_CREATED, Metadata
from quorate.simulator.model import Backing, Connection, PeerVolume, Resource, Volume
from quorate.simulator.states import Disk, Link, Replication, Role


def draws() -> Callable[[], int]:
    numbers = count(1)
    return lambda: next(numbers) << 8


def volume_of(node_id: int, peers: tuple[int, ...], current: int) -> Volume:
    resource = Resource("r0", node_id)
    volume = Volume(resource, 0, 1000, disk=Disk.UP_TO_DATE, quorum=True, blocks=100)
    resource.volumes[0] = volume
    volume.backing = Backing("/dev/vg/r0", MemoryDisk("r0", 1 << 20), Metadata(7, node_id=node_id, current=current))
    for peer_id in peers:
        connection = Connection(resource, peer_id, link=Link.CONNECTED, peer_role=Role.SECONDARY)
        peer = PeerVolume(connection, volume, replication=Replication.ESTABLISHED, disk=Disk.UP_TO_DATE)
        connection.peer_volumes[0] = peer
        resource.connections[peer_id] = connection
        assert generations.allocate_slot(volume, peer)
    return volume


def metadata_of(volume: Volume) -> Metadata:
    assert volume.backing is not None
    return volume.backing.metadata


def leave(volume: Volume, peer_id: int) -> None:
    peer = volume.resource.connections[peer_id].peer_volumes[0]
    peer.replication, peer.disk = Replication.OFF, Disk.UNKNOWN


def test_slots_are_given_lowest_first_and_kept() -> None:
    volume = volume_of(0, (2, 1), 0x500)
    assert [metadata_of(volume).peers[node].slot for node in (1, 2)] == [1, 0]


def test_a_lost_peer_keeps_the_previous_generation_as_its_bitmap_uuid() -> None:
    volume = volume_of(0, (1, 2), 0x500)
    leave(volume, 2)
    fresh = generations.begin(volume, draws())
    metadata = metadata_of(volume)
    assert fresh is not None
    assert metadata.current == fresh
    assert (metadata.peers[1].bitmap_uuid, metadata.peers[2].bitmap_uuid) == (0, 0x500)


def test_a_second_generation_does_not_move_the_mark_of_a_peer_that_is_still_away() -> None:
    volume, draw = volume_of(0, (1,), 0x500), draws()
    leave(volume, 1)
    generations.begin(volume, draw)
    generations.begin(volume, draw)
    assert metadata_of(volume).peers[1].bitmap_uuid == 0x500


def test_a_connected_client_never_starts_a_generation_of_its_own() -> None:
    volume = volume_of(0, (1,), 0x500)
    peer = volume.resource.connections[1].peer_volumes[0]
    peer.disk = Disk.DISKLESS
    peer.options["bitmap"] = False
    assert not generations.misses_writes(volume, peer)


def test_the_first_generation_of_fresh_metadata_is_never_the_marker() -> None:
    volume = volume_of(0, (), JUST_CREATED)
    fresh = generations.begin(volume, draws())
    assert fresh not in (None, JUST_CREATED)
    assert JUST_CREATED not in {entry.bitmap_uuid for entry in metadata_of(volume).peers}


def test_writes_are_recorded_for_absent_peers_and_for_nodes_without_a_slot() -> None:
    volume = volume_of(0, (1, 2), 0x500)
    leave(volume, 2)
    absent = volume.resource.connections[2].peer_volumes[0]
    generations.mark(volume, 10, 20, [absent])
    bitmaps = metadata_of(volume).bitmaps
    assert [len(bitmap) for bitmap in bitmaps] == [0, 10, 10, 10, 10, 10, 10]


def test_a_peer_that_missed_a_generation_becomes_target_and_is_equal_afterwards() -> None:
    source, target, draw = volume_of(0, (1,), 0x500), volume_of(1, (0,), 0x500), draws()
    leave(source, 1)
    generations.begin(source, draw)
    to_target = source.resource.connections[1].peer_volumes[0]
    to_source = target.resource.connections[0].peer_volumes[0]
    to_source.generations = generations.announce(source, to_target)
    own = Side(1, generations.announce(target, to_source))
    assert decide(own, Side(0, to_source.generations)).strategy is Strategy.TARGET_USE_BITMAP
    generations.finish_sync(target, to_source)
    assert metadata_of(target).current == metadata_of(source).current
    assert 0x500 in metadata_of(target).history


def test_forgetting_a_peer_frees_its_slot_and_leaves_no_trace() -> None:
    volume = volume_of(0, (1, 2), 0x500)
    metadata = metadata_of(volume)
    generations.forget(metadata, 2, 100)
    assert metadata.peers[2].unused
    assert metadata.free_slot() == 1


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(1, 30)), max_size=20))
def test_a_bitmap_covers_exactly_the_written_blocks(writes: list[tuple[int, int]]) -> None:
    volume = volume_of(0, (1,), 0x500)
    leave(volume, 1)
    absent = volume.resource.connections[1].peer_volumes[0]
    expected: set[int] = set()
    for start, length in writes:
        end = min(start + length, 100)
        generations.mark(volume, start, end, [absent])
        expected.update(range(start, end))
    assert absent.out_of_sync is not None
    assert {block for block in range(100) if block in absent.out_of_sync} == expected
    assert len(absent.out_of_sync) == len(expected)

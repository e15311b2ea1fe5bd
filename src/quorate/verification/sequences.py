"""Hand-written revision sequences: which order of revisions is safe while a voter joins or leaves.

These are the joint-quorum questions of facts/datamesh 1.10 and of decisions 4 and 6, asked to the kernel model in
both voter modes without the engine: every node applies revisions at its own pace and in split steps, faults strike at
any moment, and the next revision is published when everybody who must confirm has confirmed. The answers stand in
`docs/decisions/voter-changes-beside-a-tie-breaker.md`; a test holds them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from quorate.verification.agent import Order
from quorate.verification.assertions import Assertions
from quorate.verification.configuration import DISKFUL, GONE, LIMINAL, TIE_BREAKER, Mesh, majority, project
from quorate.verification.kernel import Kernels
from quorate.verification.world import CRASH, LINK, PARTITION, Event, Target, World, Worlds


class Sequence(NamedTuple):
    """Revisions in order, and what must hold whenever one is published.

    `absent`: nodes that never confirm nor apply, an emergency removal's subject; it is published only while no member
    reports a connection to them (G25), and with `quorate` only while every remaining voter has quorum.
    `connected`: published only while all voters and tie-breakers are connected (decision 4).
    """

    name: str
    meshes: tuple[Mesh, ...]
    absent: int = 0
    quorate: bool = False
    connected: bool = False
    fenced: bool = False
    """The absent nodes are down for good from the start."""
    check_flag: bool = True
    order: Order = "strict"


class SequenceState(NamedTuple):
    published: int
    world: World
    revisions: tuple[int, ...]


class SequenceModel:
    """Plays a sequence against every interleaving of agents and faults."""

    def __init__(
        self,
        sequence: Sequence,
        *,
        dynamic: bool,
        faults: int,
        primaries: tuple[int, ...],
        kinds: tuple[str, ...] = (PARTITION, LINK, CRASH),
    ) -> None:
        self.sequence = sequence
        self.faults = faults
        self.primaries = primaries
        self.kinds = kinds
        size = len(sequence.meshes[0].kinds)
        self.worlds = Worlds(Kernels(dynamic=dynamic), size, order=sequence.order)
        self.assertions = Assertions(self.worlds)
        self._targets = [tuple(project(mesh, i, dynamic=dynamic) for i in range(size)) for mesh in sequence.meshes]
        self._primary = 0

    def target(self, state: SequenceState, i: int) -> Target:
        return Target(self._targets[state.published][i], self.clusters_primary(state) == i)

    def clusters_primary(self, state: SequenceState) -> int:
        """The attached node: its role never changes here, only its quorum does."""
        return self._primary_of[state.revisions[-1]]

    def initial(self) -> Iterator[SequenceState]:
        mesh = self.sequence.meshes[0]
        disks = sum(1 << i for i, kind in enumerate(mesh.kinds) if kind == DISKFUL)
        self._primary_of = dict(enumerate(self.primaries))
        for number, primary in self._primary_of.items():
            targets = tuple(Target(c, i == primary) for i, c in enumerate(self._targets[0]))
            world = self.worlds.start(targets, disks)
            if self.sequence.fenced:
                world = self._without_absent(world)
            yield SequenceState(0, world, (*(0 for _ in mesh.kinds), number))

    def _without_absent(self, world: World) -> World:
        for i in range(self.worlds.size):
            if self.sequence.absent >> i & 1:
                cluster = self.worlds.kernels.crash(self.worlds.clusters[world.cluster], i, self.worlds.cut(world))
                world = self.worlds.fence(world._replace(cluster=self.worlds.number(cluster)), i)
        return world

    def successors(self, state: SequenceState) -> Iterator[tuple[Event, SequenceState]]:
        worlds, world = self.worlds, state.world
        if state.published + 1 < len(self.sequence.meshes) and self._all_confirmed(state) and self._gate(state):
            yield (
                Event("publishes", 0, f"revision {state.published + 1}"),
                state._replace(published=state.published + 1),
            )
        for i in range(worlds.size):
            if self.sequence.absent >> i & 1:
                continue
            step = worlds.agent_step(world, i, self.target(state, i))
            if step is not None:
                yield Event(step[0], 1 << i), self._confirm(state._replace(world=step[1]))
            elif state.revisions[i] < state.published:
                after = self._confirm(state, i)
                if after != state:
                    yield Event("confirms", 1 << i), after
        for event, after in worlds.progress(world):
            yield event, state._replace(world=after)
        for event, after in worlds.repairs(world, lambda i: self.target(state, i)):
            yield event, state._replace(world=after)

    def strikes(self, state: SequenceState) -> Iterator[tuple[Event, SequenceState]]:
        """Every fault that can strike."""
        for event, after in self.worlds.faults(state.world, self.kinds, (1 << self.worlds.size) - 1):
            yield event, state._replace(world=after)

    def _confirm(self, state: SequenceState, only: int | None = None) -> SequenceState:
        if only is None:
            return state
        target = self.target(state, only)
        if not self.worlds.confirms(state.world, only, target, check_flag=self.sequence.check_flag):
            return state
        revisions = list(state.revisions)
        revisions[only] = state.published
        return state._replace(revisions=tuple(revisions))

    def _all_confirmed(self, state: SequenceState) -> bool:
        """Everybody who is a member now or was one before, short of the absent, holds the revision."""
        now = self.sequence.meshes[state.published].kinds
        before = self.sequence.meshes[max(0, state.published - 1)].kinds
        return all(
            state.revisions[i] >= state.published or self.sequence.absent >> i & 1
            for i in range(len(now))
            if now[i] != GONE or before[i] != GONE
        )

    def _gate(self, state: SequenceState) -> bool:
        cluster = self.worlds.clusters[state.world.cluster]
        absent, kinds = self.sequence.absent, self.sequence.meshes[state.published].kinds
        if any(links & absent for i, links in enumerate(cluster.links) if not absent >> i & 1):
            return False
        voters = [i for i, kind in enumerate(kinds) if kind in (DISKFUL, LIMINAL) and not absent >> i & 1]
        if self.sequence.quorate and not all(cluster.nodes[i].quorum for i in voters):
            return False
        if self.sequence.connected:
            members = sum(1 << i for i, kind in enumerate(kinds) if kind != GONE)
            return all(cluster.links[i] & members == members & ~(1 << i) for i in voters)
        return True

    def broken(self, state: SequenceState) -> tuple[str, ...]:
        return self.assertions.of(state.world.cluster, state.world.fenced)

    def canonical(self, state: SequenceState) -> SequenceState:
        return state


def kinds_of(diskful: int, extra: int, ties: int) -> tuple[int, ...]:
    """Nodes in the order: diskful ones, the one that joins or leaves, tie-breakers."""
    return (*(DISKFUL,) * diskful, extra, *(TIE_BREAKER,) * ties)


def joining(diskful: int, ties: int, qmr: int, way: str) -> Sequence:
    """A D∅ joins `diskful` voters beside `ties` tie-breakers."""
    before = Mesh(kinds_of(diskful, GONE, ties), majority(diskful), qmr)
    after = Mesh(kinds_of(diskful, LIMINAL, ties), majority(diskful + 1), qmr)
    middle = {
        "direct": (),
        "M1": (before._replace(ties_off=True), after._replace(ties_off=True)),
        "M2": (before._replace(quorum=before.quorum + 1),),
        "M2 with the voter": (after._replace(quorum=after.quorum + 1),),
    }[way]
    return Sequence(f"{diskful}D+{ties}TB join, {way}", (before, *middle, after))


def leaving(diskful: int, ties: int, qmr: int, way: str) -> Sequence:
    """A D∅ leaves; `diskful` voters stay."""
    before = Mesh(kinds_of(diskful, LIMINAL, ties), majority(diskful + 1), qmr)
    after = Mesh(kinds_of(diskful, GONE, ties), majority(diskful), qmr)
    middle = {
        "direct": (),
        "M1": (before._replace(ties_off=True), after._replace(ties_off=True)),
        "M2": (after._replace(quorum=after.quorum + 1),),
        "q first": (before._replace(quorum=before.quorum + 1),),
    }[way]
    return Sequence(f"{diskful + 1}D+{ties}TB leave, {way}", (before, *middle, after))


def removing(diskful: int, ties: int, qmr: int, way: str) -> Sequence:
    """Emergency: one of `diskful` voters, the last, is removed without its confirmation."""
    kinds = (*(DISKFUL,) * diskful, *(TIE_BREAKER,) * ties)
    subject = diskful - 1
    rest = (*(DISKFUL,) * subject, GONE, *(TIE_BREAKER,) * ties)
    before = Mesh(kinds, majority(diskful), qmr)
    after = Mesh(rest, majority(subject), qmr)
    middle = {
        "direct": (),
        "q + 1": (after._replace(quorum=after.quorum + 1),),
        "shun": (before._replace(shunned=1 << subject),),
        "M1": (before._replace(ties_off=True), after._replace(ties_off=True)),
    }[way]
    return Sequence(f"{diskful}D+{ties}TB remove, {way}", (before, *middle, after), absent=1 << subject)


class Ruling(NamedTuple):
    """A row of the decision: a sequence and whether it is safe; both voter modes agree on every one."""

    name: str
    sequence: Sequence
    safe: bool
    faults: int = 2
    quick: bool = False
    """Whether a test can afford it."""
    primaries: tuple[int, ...] = (0,)
    """Where the volume may be attached."""


def _rulings() -> Iterator[Ruling]:
    for kind, make in (("join", joining), ("leave", leaving)):
        yield Ruling(f"{kind}, direct", make(2, 1, 1, "direct")._replace(connected=True), safe=False, quick=True)
        for way in ("M1", "M2"):
            sequence = make(2, 1, 1, way)
            yield Ruling(f"{kind}, {way}, connected", sequence._replace(connected=True), safe=True)
            one = Ruling(f"{kind}, {way}, connected, one fault", sequence._replace(connected=True), True, 1)
            yield one._replace(quick=kind == "join")
    yield Ruling("join, M1, not connected", joining(2, 1, 1, "M1"), safe=False)
    yield Ruling("join, M2, not connected", joining(2, 1, 1, "M2"), safe=False)
    yield Ruling("join, M2 with the voter", joining(2, 1, 1, "M2 with the voter")._replace(connected=True), safe=True)
    for diskful, ties, qmr, way, safe in (
        (3, 0, 2, "direct", True),
        (2, 1, 1, "direct", False),
        (2, 1, 1, "shun", True),
        (3, 1, 2, "q + 1", True),
        (3, 1, 2, "M1", True),
    ):
        sequence = removing(diskful, ties, qmr, way)
        name = f"remove, {sequence.name}, survivors have quorum"
        yield Ruling(name, sequence._replace(quorate=True), safe, quick=diskful + ties < 4)
    blind = Ruling("remove, 2D+1TB, shun, nobody asks for quorum", removing(2, 1, 1, "shun"), safe=False, quick=True)
    yield blind._replace(primaries=(0, 1))
    for diskful, ties, qmr in ((2, 1, 1), (3, 0, 2), (3, 1, 2)):
        sequence = removing(diskful, ties, qmr, "direct")._replace(fenced=True)
        yield Ruling(f"remove, {sequence.name}, fenced", sequence, True, quick=diskful + ties < 4)


RULINGS: Final = tuple(_rulings())
"""The tables of docs/decisions/voter-changes-beside-a-tie-breaker.md."""

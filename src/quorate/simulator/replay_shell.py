"""The few shell forms that occur in recorded command lines, run against a simulated node.

Guarantees: what is not DRBD, LVM or dd is skipped with a reason and never guessed; a line is recognised by its form,
not by the scenario it came from.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from quorate.simulator.blocks import BLOCK, DeviceError, digest
from quorate.simulator.cluster import Cluster
from quorate.simulator.kernel import Kernel
from quorate.simulator.lvm import PROGRAMS
from quorate.simulator.model import Opener, Volume
from quorate.simulator.replay_loops import Loop, LoopWriter, Openings, parse_loop
from quorate.simulator.replay_sequences import run_sequence, split_sequence
from quorate.simulator.result import OK, Result
from quorate.simulator.scheduler import SimulatedTime

_TIMEOUT: Final = re.compile(r"timeout (\d+) (.*)\Z", re.DOTALL)
_HOLD: Final = re.compile(r"sh -c 'exec 3(<>?)(/dev/drbd\d+); exec sleep \d+'")
_BACKGROUND: Final = re.compile(r"rm -f (\S+); \((dd .*?); echo exit \$\? ?> ?\S+\).* & echo started\Z")
_DIGEST: Final = re.compile(r"(dd if=/dev/(?!drbd)\S+ .*?) \| md5sum\Z")
_MAP: Final = re.compile(r'N=\$\(blockdev --getsz (\S+)\); dmsetup create (\w+) --table "0 \$N linear (\S+) 0"')
_REMAP: Final = re.compile(r'N=\$\(blockdev --getsz \S+\); dmsetup suspend .*? dmsetup load (\w+) --table "0 \$N (\w+)')
_DRBD_DEVICE: Final = re.compile(r"/dev/drbd(\d+)\Z")


@dataclass(frozen=True, slots=True)
class Skipped:
    reason: str


Outcome = Result | Skipped | None
"""None: the command hangs."""


@dataclass(slots=True)
class Shell:
    """Runs recorded lines; remembers what background programs left behind."""

    cluster: Cluster
    files: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    holders: dict[str, list[tuple[int, Opener]]] = field(default_factory=dict[str, list[tuple[int, Opener]]])
    openings: Openings = field(default_factory=Openings)
    writers: list[LoopWriter] = field(default_factory=list[LoopWriter])
    pids: int = 4000
    patience: float = 2.5  # how long a foreground write may wait for a loss to be noticed

    def run(self, node: str, line: str) -> Outcome:
        wrapped = _TIMEOUT.match(line)
        if wrapped is not None:
            return self.run(node, wrapped.group(2))
        if (hold := _HOLD.match(line)) is not None:
            return self._hold(node, hold.group(2), write=hold.group(1) == "<>")
        if (background := _BACKGROUND.match(line)) is not None:
            return self._background(node, background.group(1), background.group(2))
        if (loop := parse_loop(line)) is not None:
            return self._loop(node, loop)
        if (content := _DIGEST.match(line)) is not None:
            return self._digest(node, content.group(1))
        if (mapping := _MAP.match(line)) is not None:
            return self._map(node, mapping.group(2), mapping.group(3))
        if (remapping := _REMAP.match(line)) is not None:
            return self._remap(node, remapping.group(1), failing=remapping.group(2) == "error")
        if line.startswith("for p in $(pidof sleep)"):
            return self._release(node)
        if line.startswith("cat /tmp/") and ";" not in line:
            return self._cat(node, line.split()[1])
        if any(mark in line for mark in (";", "|", "&", "$(", ">")):
            return self._sequence(node, line)
        return self._single(node, line)

    def _sequence(self, node: str, line: str) -> Outcome:
        parts = split_sequence(line)
        if parts is None or not any(self._is_ours(part.argv) for part in parts):
            return Skipped("a shell line with more than one program")
        outcome = run_sequence(parts, self._is_ours, lambda argv: self._part(node, argv))
        return Skipped(outcome) if isinstance(outcome, str) else outcome

    def _is_ours(self, argv: Sequence[str]) -> bool:
        words = _without_timeout(argv)
        background = words[0] == "cat" and words[-1].startswith("/tmp/")
        return words[0] in ("drbdsetup", "drbdmeta", "dd") or words[0] in PROGRAMS or background

    def _part(self, node: str, argv: Sequence[str]) -> Result | None:
        outcome = self.run(node, shlex.join(_without_timeout(argv)))
        return OK if isinstance(outcome, Skipped) else outcome

    def _single(self, node: str, line: str) -> Outcome:
        try:
            argv = shlex.split(line)
        except ValueError:
            return Skipped("not a command line")
        if not argv:
            return Skipped("empty")
        if argv[0] in ("drbdsetup", "drbdmeta") or argv[0] in PROGRAMS:
            return self.cluster.node(node).execute(argv)
        if argv[0] == "dd":
            return self._dd(node, argv[1:])
        return Skipped(f"{argv[0]} is neither DRBD nor LVM nor dd")

    # --- dd ----------------------------------------------------------------------------------------------------

    def _dd(self, node: str, words: list[str]) -> Outcome:
        given = dict(word.split("=", 1) for word in words if "=" in word)
        source, target = given.get("if", ""), given.get("of", "")
        size = _bytes(given.get("bs", given.get("obs", "512")))
        blocks = max(1, size // BLOCK)
        count = _bytes(given["count"]) if "count" in given else None
        if _DRBD_DEVICE.match(target):
            return self._write(node, target, _bytes(given.get("seek", "0")) * blocks, count, blocks)
        if _DRBD_DEVICE.match(source):
            return self._read(node, source, _bytes(given.get("skip", "0")) * blocks, count, blocks)
        return Skipped("dd that does not touch a DRBD device")

    def _write(self, node: str, path: str, start: int, count: int | None, blocks: int) -> Outcome:
        """`dd` with direct I/O: one request per block size, the next after the answer of the one before.

        Without a count, or beyond the end, it stops where the device is full (exit 1).
        """
        kernel = self.cluster.node(node).kernel
        volume = kernel.minors.get(int(path.removeprefix("/dev/drbd")))
        if volume is None:
            return Result(1, "", f"dd: can't open '{path}': No such device or address\n")
        try:
            opener = self.cluster.io.open(kernel, volume, write=True, program="dd", pid=self._pid())
        except DeviceError as error:
            return Result(1, "", f"dd: can't open '{path}': {error.strerror}\n")
        answers: list[int | None] = []
        room = max(volume.blocks - start, 0) // blocks
        wanted = room if count is None else min(count, room)
        if wanted:
            self._write_on(kernel, volume, opener, start, wanted, blocks, answers.append)
            self._wait(answers)
        else:
            self.cluster.io.close(kernel, volume, opener)
            answers.append(None)
        if not answers:
            return None
        if answers[0] is None and (count is None or count > room):
            return Result(1, "", f"dd: error writing '{path}': No space left on device\n")
        return OK if answers[0] is None else Result(1, "", f"dd: error writing '{path}': Input/output error\n")

    def _wait(self, answers: list[int | None]) -> None:
        """A foreground program waits; the simulated clock goes on for as long as the lab waited at most."""
        if not answers and isinstance(self.cluster.scheduler, SimulatedTime):
            until = self.cluster.scheduler.time() + self.patience
            while not answers and self.cluster.scheduler.step(until):
                pass

    def _write_on(
        self,
        kernel: Kernel,
        volume: Volume,
        opener: Opener,
        start: int,
        count: int,
        blocks: int,
        done: Callable[[int | None], None],
        *,
        close: bool = True,
    ) -> None:
        def finish(error: int | None) -> None:
            if error is None and count > 1:
                self._write_on(kernel, volume, opener, start + blocks, count - 1, blocks, done, close=close)
                return
            if close and opener in volume.openers:
                self.cluster.io.close(kernel, volume, opener)
            done(error)

        values = tuple(self.cluster.fresh_value() for _ in range(blocks))
        self.cluster.io.write(kernel, volume, start, values, finish)

    def _read(self, node: str, path: str, start: int, count: int | None, blocks: int) -> Outcome:
        kernel = self.cluster.node(node).kernel
        volume = kernel.minors.get(int(path.removeprefix("/dev/drbd")))
        if volume is None:
            return Result(1, "", f"dd: can't open '{path}': No such device or address\n")
        try:
            opener = self.cluster.io.open(kernel, volume, write=False, program="dd", pid=self._pid())
        except DeviceError as error:
            return Result(1, "", f"dd: can't open '{path}': {error.strerror}\n")
        try:
            last = volume.blocks if count is None else min(start + count * blocks, volume.blocks)
            for block in range(start, last):
                self.cluster.io.read(kernel, volume, block)
        except DeviceError as error:
            return Result(1, "", f"dd: error reading '{path}': {error.strerror}\n")
        finally:
            self.cluster.io.close(kernel, volume, opener)
        return OK

    def _digest(self, node: str, line: str) -> Outcome:
        given = dict(word.split("=", 1) for word in line.split()[1:] if "=" in word)
        device = self.cluster.node(node).device(given["if"])
        if device is None:
            return Skipped("no such device")
        blocks = _bytes(given.get("bs", "512")) * int(given.get("count", "0")) // BLOCK
        return Result(0, f"{digest(device, 0, blocks)}  -\n")

    # --- programs in the background ----------------------------------------------------------------------------

    def _hold(self, node: str, path: str, *, write: bool) -> Outcome:
        kernel = self.cluster.node(node).kernel
        minor = int(path.removeprefix("/dev/drbd"))
        volume, pid = kernel.minors.get(minor), self._pid()
        if volume is not None:
            try:
                opener = self.cluster.io.open(kernel, volume, write=write, program="sh", pid=pid)
            except DeviceError:
                return Result(0, f"pid {pid}\n")  # the shell in the background fails, the line itself does not
            self.holders.setdefault(node, []).append((minor, opener))
        return Result(0, f"pid {pid}\n")

    def _release(self, node: str) -> Outcome:
        kernel = self.cluster.node(node).kernel
        for minor, opener in self.holders.pop(node, []):
            volume = kernel.minors.get(minor)
            if volume is not None and opener in volume.openers:
                self.cluster.io.close(kernel, volume, opener)
        return OK

    def _background(self, node: str, target: str, command: str) -> Outcome:
        self.files.pop((node, target), None)
        given = dict(word.split("=", 1) for word in command.split()[1:] if "=" in word)
        kernel = self.cluster.node(node).kernel
        device = _DRBD_DEVICE.match(given.get("of", ""))
        if device is None:
            return Skipped("dd in the background that does not write to a DRBD device")
        try:
            volume = kernel.minors.get(int(device.group(1)))
            if volume is None:
                raise DeviceError(6, "No such device or address")
            opener = self.cluster.io.open(kernel, volume, write=True, program="dd", pid=self._pid())
        except DeviceError:
            self.files[node, target] = "exit 1\n"
            return Result(0, "started\n")
        blocks = max(1, _bytes(given.get("bs", "512")) // BLOCK)
        count = _bytes(given["count"]) if "count" in given else max(1, volume.blocks // blocks)

        def done(error: int | None) -> None:
            self.files[node, target] = f"exit {0 if error is None else 1}\n"

        self._write_on(kernel, volume, opener, _bytes(given.get("seek", "0")) * blocks, count, blocks, done)
        return Result(0, "started\n")

    def _loop(self, node: str, loop: Loop) -> Outcome:
        """A loop around `dd` in the background; without a DRBD device it is none of ours."""
        device = _DRBD_DEVICE.match(loop.words(loop.values.start).get("of", ""))
        if device is None:
            return Skipped("a loop that does not write to a DRBD device")
        kernel, minor = self.cluster.node(node).kernel, int(device.group(1))

        def say(text: str) -> None:
            self.files[node, loop.output] = self.files.get((node, loop.output), "") + text

        def write(opener: Opener, words: dict[str, str], done: Callable[[int | None], None]) -> None:
            blocks = max(1, _bytes(words.get("bs", "512")) // BLOCK)
            start, count = int(words.get("seek", "0")) * blocks, int(words.get("count", "1"))
            self._write_on(kernel, kernel.minors[minor], opener, start, count, blocks, done, close=False)

        say("")
        writer = LoopWriter(self.cluster, node, minor, loop, self.openings, write, say, self._pid)
        self.writers.append(writer)
        writer.start()
        return Result(0, "started\n")

    def writes_in_background(self, node: str) -> bool:
        return any(writer.running and writer.node == node for writer in self.writers)

    def _cat(self, node: str, path: str) -> Outcome:
        text = self.files.get((node, path))
        if text is None:
            return Result(1, "", f"cat: can't open '{path}': No such file or directory\n")
        return Result(0, text)

    def _map(self, node: str, name: str, path: str) -> Outcome:
        device = self.cluster.node(node).device(path)
        if device is None:
            return Skipped("no such device to map")
        self.cluster.node(node).mapped[f"/dev/mapper/{name}"] = device
        return OK

    def _remap(self, node: str, name: str, *, failing: bool) -> Outcome:
        if self.cluster.node(node).device(f"/dev/mapper/{name}") is None:
            return Skipped("no such device to map")
        self.cluster.fail_disk(node, f"/dev/mapper/{name}", failed=failing)
        return OK

    def _pid(self) -> int:
        self.pids += 1
        return self.pids


def _without_timeout(argv: Sequence[str]) -> Sequence[str]:
    return argv[2:] if argv[0] == "timeout" and len(argv) > 2 else argv


_UNITS: Final = {"c": 1, "w": 2, "b": 512, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_DECIMAL: Final = {"kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9}


def _bytes(text: str) -> int:
    """A number as dd writes it: `64k`, `1M`, `4KiB`, `2MB`."""
    digits = text.rstrip("cwbkKMGBi")
    suffix = text[len(digits) :].replace("iB", "")
    scale = _DECIMAL.get(suffix) or _UNITS.get(suffix, 1)
    return int(digits) * scale if digits.isdigit() else 0

"""Shell loops around `dd` that write in the background of a recorded scenario.

Guarantees: a loop is recognised by its form (`while [ $x -lt N ]` or `for x in $(seq A B)` around one `dd`), its writes go
to the simulated device one after the other, and it ends with its machine. When each `dd` ran is a matter of the recorded
machine, so the recorded moments of opening and closing are used where there are any.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from quorate.simulator.blocks import DeviceError
from quorate.simulator.cluster import Cluster
from quorate.simulator.model import Opener

_LOOP: Final = re.compile(
    r"(?:rm -f \S+; ?)?(?:\(|(?:sh -c '))?(?:(?P<name>\w+)=(?P<first>\d+); ?)?"
    r"(?:while \[ \$(?P<tested>\w+) -lt (?P<limit>\d+) \]|for (?P<each>\w+) in \$\(seq (?:(?P<low>\d+) )?(?P<high>\d+)\));"
    r" ?do (?P<dd>dd [^;|]*?)(?: ?(?:\|\||&&) ?[^;]*)?; ?(?P<rest>.*?)done(?P<tail>.*)\Z",
    re.DOTALL,
)
_SLEEP: Final = re.compile(r"sleep ([\d.]+)")
_OUTPUT: Final = re.compile(r">>? ?(/\S+)")
_OPERATORS: Final[dict[type[ast.operator], Callable[[int, int], int]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: lambda one, other: one // other,
    ast.Mod: operator.mod,
}
DD_TAKES: Final = 0.05


@dataclass(frozen=True, slots=True)
class Loop:
    """A recognised loop: values of its variable, the `dd` of one round, the pause after it, where its output goes."""

    variable: str
    values: range
    dd: str
    pause: float
    output: str

    def words(self, value: int) -> dict[str, str]:
        """The operands of this round's `dd`."""
        line = re.sub(r"\$\(\((.*?)\)\)", lambda found: str(_evaluate(found.group(1), self.variable, value)), self.dd)
        line = re.sub(rf"\$\{{?{self.variable}\b\}}?", str(value), line)
        return dict(word.split("=", 1) for word in line.split()[1:] if "=" in word)


def parse_loop(line: str) -> Loop | None:
    """The loop in the background that a line starts, None when it is something else."""
    found = _LOOP.match(line)
    if found is None or "&" not in found["tail"]:
        return None
    if found["each"] is not None:
        variable, values = found["each"], range(int(found["low"] or 1), int(found["high"]) + 1)
    else:
        variable, values = found["tested"], range(int(found["first"] or 0), int(found["limit"]))
    pause, output = _SLEEP.search(found["rest"]), _OUTPUT.search(found["tail"])
    return Loop(
        variable,
        values,
        found["dd"],
        float(pause.group(1)) if pause is not None else 0.0,
        output.group(1) if output is not None else "",
    )


def _evaluate(expression: str, variable: str, value: int) -> int:
    tree = ast.parse(expression.replace("$", ""), mode="eval")

    def compute(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name) if name == variable:
                return value
            case ast.BinOp(left=left, op=symbol, right=right) if type(symbol) in _OPERATORS:
                return _OPERATORS[type(symbol)](compute(left), compute(right))
            case _:
                raise ValueError(f"not simple arithmetic: {expression}")

    return compute(tree.body)


@dataclass(slots=True)
class Openings:
    """When the device of a node was opened and closed in the recording."""

    moments: dict[str, list[tuple[float, int, bool]]] = field(default_factory=dict[str, list[tuple[float, int, bool]]])

    def next(self, node: str, minor: int, after: float, *, opened: bool) -> float | None:
        for moment, which, open_ in self.moments.get(node, ()):
            if moment > after and which == minor and open_ is opened:
                return moment
        return None


Write = Callable[[Opener, dict[str, str], Callable[[int | None], None]], None]
"""Performs the `dd` of one round and says how it ended."""


@dataclass(slots=True)
class LoopWriter:
    """One running loop."""

    cluster: Cluster
    node: str
    minor: int
    loop: Loop
    openings: Openings
    write: Write
    say: Callable[[str], None]
    pid: Callable[[], int]
    running: bool = True

    def start(self) -> None:
        self._plan(0)

    def _plan(self, position: int) -> None:
        if position >= len(self.loop.values):
            self.running = False
            self.say(f"done {self.loop.values.stop}\n")
            return
        now = self.cluster.scheduler.time()
        usual = now + (self.loop.pause if position else 0.0)
        moment = self.openings.next(self.node, self.minor, now, opened=True)
        soon = moment if moment is not None and moment < usual + 1.0 else usual
        kernel = self.cluster.nodes[self.node].kernel
        self.cluster.scheduler.call_later(soon - now, lambda: self._round(position, kernel))

    def _round(self, position: int, kernel: object) -> None:
        node = self.cluster.nodes[self.node]
        volume = node.kernel.minors.get(self.minor)
        if not node.running or node.kernel is not kernel:
            self.running = False  # it died with its machine
            return
        try:
            if volume is None:
                raise DeviceError(6, "No such device or address")
            opener = self.cluster.io.open(node.kernel, volume, write=True, program="dd", pid=self.pid())
        except DeviceError:
            self.say(f"fail {self.loop.values[position]}\n")
            self.cluster.scheduler.call_later(DD_TAKES, lambda: self._plan(position + 1))
            return
        self.write(
            opener, self.loop.words(self.loop.values[position]), lambda error: self._ended(position, opener, error)
        )

    def _ended(self, position: int, opener: Opener, error: int | None) -> None:
        if error is not None:
            self.say(f"fail {self.loop.values[position]}\n")
        now = self.cluster.scheduler.time()
        closed = self.openings.next(self.node, self.minor, now, opened=False)
        delay = closed - now if closed is not None and closed - now < 1.0 else DD_TAKES
        self.cluster.scheduler.call_later(delay, lambda: self._close(position, opener))

    def _close(self, position: int, opener: Opener) -> None:
        node = self.cluster.nodes[self.node]
        volume = node.kernel.minors.get(self.minor)
        if node.running and volume is not None and opener in volume.openers:
            self.cluster.io.close(node.kernel, volume, opener)
        self._plan(position + 1)

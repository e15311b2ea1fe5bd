"""Where the tour is shown: a live picture in a terminal, lines of text elsewhere, or nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from quorate.demo.acts import Act, Check
from quorate.demo.picture import Picture, lines, plain_row

if TYPE_CHECKING:
    from rich.text import Text

STYLES = {"good": "green", "busy": "yellow", "bad": "bold red", "quiet": "dim", "name": "bold"}


class SilentScreen:
    """For machines."""

    def begin(self, number: int, total: int, act: Act) -> None:
        """Nothing to see."""

    def show(self, picture: Picture) -> None:
        """Nothing to see."""

    def end(self, act: Act, checks: Sequence[Check], seconds: float) -> None:
        """Nothing to see."""


class PlainScreen:
    """Lines of text: a volume is told again when the state of one of its replicas changes."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._told: dict[str, str] = {}

    def begin(self, number: int, total: int, act: Act) -> None:
        self._write("")
        self._write(f"{number}/{total} {act.title}")
        for line in act.lines:
            self._write(f"  {line}")

    def show(self, picture: Picture) -> None:
        for volume in picture.volumes:
            line = plain_row(picture, volume)
            # Every per cent would be a line of its own.
            gist = re.sub(r"\d+%", "%", line)
            if self._told.get(volume.name) != gist:
                self._told[volume.name] = gist
                self._write(line)

    def end(self, act: Act, checks: Sequence[Check], seconds: float) -> None:
        for check in checks:
            self._write(check_line(check))


class LiveScreen:
    """A picture that is redrawn in place while an act is played; what was said stays above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._last: Picture | None = None

    def __enter__(self) -> LiveScreen:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def begin(self, number: int, total: int, act: Act) -> None:
        self._console.print()
        self._console.print(f"[bold cyan]{number}/{total} {act.title}[/]")
        for line in act.lines:
            self._console.print(f"  {line}")

    def show(self, picture: Picture) -> None:
        self._last = picture
        self._live.update(_drawn(picture), refresh=True)

    def end(self, act: Act, checks: Sequence[Check], seconds: float) -> None:
        from rich.text import Text

        if self._last is not None and self._last.volumes:
            self._console.print(_drawn(self._last))
        self._live.update(Text(""), refresh=True)
        for check in checks:
            self._console.print(check_line(check), style="green" if check.ok else "bold red")


def _drawn(picture: Picture) -> Text:
    from rich.text import Text

    text = Text(no_wrap=True, overflow="crop")
    for number, pieces in enumerate(lines(picture)):
        text.append("\n" if number else "")
        for piece, mood in pieces:
            text.append(piece, STYLES[mood])
    return text


def check_line(check: Check) -> str:
    """One check in one line."""
    return f"  {'ok  ' if check.ok else 'FAIL'} {check.name}: {check.detail}"[:80]

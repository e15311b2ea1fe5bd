"""One server per directory: an advisory lock that goes with the process, however it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class DirectoryInUse(Exception):
    """Another process holds the directory."""


class DirectoryLock:
    """Held from construction to `release`."""

    def __init__(self, directory: Path) -> None:
        self._descriptor: int | None = os.open(directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.release()
            raise DirectoryInUse(f"another server uses the directory {directory}") from None

    def release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

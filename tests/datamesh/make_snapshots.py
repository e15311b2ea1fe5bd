"""Write the snapshots that are missing: `python -m tests.datamesh.make_snapshots`.

A file that exists is never rewritten: it is the status that a released version left behind. Delete it by hand only if its
format was never written by a release.
"""

from __future__ import annotations

from pathlib import Path

from tests.datamesh.snapshot_scenarios import encode, snapshots

DIRECTORY = Path(__file__).parent / "snapshots"


def main() -> None:
    """Add a file for every step that has none."""
    for snapshot in snapshots():
        path = DIRECTORY / snapshot.name
        if not path.exists():
            path.write_bytes(encode(snapshot))
            print(path.name)


if __name__ == "__main__":
    main()

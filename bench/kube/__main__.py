"""`python -m bench.kube`: figures on a real API server, as a table and, in the last line, as JSON."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from tests.kube import accounts, binaries
from tests.kube.conftest import install_crds
from tests.kube.servers import ControlPlane, control_plane

from bench.__main__ import machine, table
from bench.figure import Figure
from bench.kube import formation, scale


async def measure(plane: ControlPlane) -> dict[str, list[Figure]]:
    """Everything, one after the other."""
    sys.stderr.write("measuring formation\n")
    results = {"formation": await formation.figures(plane)}
    sys.stderr.write("measuring scale\n")
    results["scale"] = await scale.figures(plane)
    return results


def main() -> None:
    """Start the servers, measure, print."""
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch, control_plane(Path(scratch)) as plane:
        install_crds(plane, binaries.directory(("kubectl",)))
        accounts.install(plane)
        results = asyncio.run(measure(plane))
    # Rates and latencies are of the wall clock: how busy the machine was beside them belongs to the figures.
    where = machine() | {"load average before": f"{before:.1f}", "after": f"{os.getloadavg()[0]:.1f}"}
    sys.stdout.write(", ".join(f"{key}: {value}" for key, value in where.items()) + "\n\n" + table(results) + "\n\n")
    document = {"machine": where, "figures": {name: [asdict(one) for one in found] for name, found in results.items()}}
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()

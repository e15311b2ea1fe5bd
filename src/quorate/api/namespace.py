"""Namespace (built-in)."""

from __future__ import annotations

from quorate.api.meta import Object
from quorate.api.value import Value


class NamespaceSpec(Value):
    """Spec of a namespace."""

    finalizers: tuple[str, ...] = ()


class NamespaceStatus(Value):
    """Status of a namespace."""

    phase: str = ""


class Namespace(Object):
    """A namespace."""

    spec: NamespaceSpec = NamespaceSpec()
    status: NamespaceStatus = NamespaceStatus()

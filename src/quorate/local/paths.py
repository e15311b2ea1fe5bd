"""Which resource a URL path names.

`/api/v1/…` is the core group, `/apis/<group>/<version>/…` every other; below,
`namespaces/<ns>/<plural>/<name>/<subresource>`.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

_NAMESPACE_SUBRESOURCES = ("status", "finalize")


@dataclass(frozen=True)
class ResourcePath:
    """A path below a group and version; empty parts are absent."""

    group: str
    version: str
    plural: str = ""
    namespace: str = ""
    name: str = ""
    subresource: str = ""


def parse_resource_path(path: str) -> ResourcePath | None:
    """The resource of an absolute, escaped path; `None` when the path has another shape."""
    parts = [unquote(part) for part in path.split("/") if part]
    match parts:
        case ["api", version, *rest]:
            group = ""
        case ["apis", group, version, *rest]:
            pass
        case _:
            return None
    match rest:
        case []:
            return ResourcePath(group, version)
        case ["namespaces", name, subresource] if subresource in _NAMESPACE_SUBRESOURCES:
            return ResourcePath(group, version, "namespaces", "", name, subresource)
        case ["namespaces", namespace, plural, *below] if len(below) <= 2:
            pass
        case [plural, *below] if len(below) <= 2:
            namespace = ""
        case _:
            return None
    name = below[0] if below else ""
    subresource = below[1] if len(below) > 1 else ""
    return ResourcePath(group, version, plural, namespace, name, subresource)

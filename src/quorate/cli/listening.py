"""Addresses to listen on, as the node agent and the extender take them: `[HOST]:PORT`, `0` for none."""

from __future__ import annotations

from dataclasses import dataclass

import click


@dataclass(frozen=True)
class Address:
    """Where a process listens."""

    host: str
    port: int


def address(context: click.Context, parameter: click.Parameter, text: str) -> Address | None:
    """A click callback; without a host on all addresses, as scrapers and probes come from outside the pod."""
    del context
    if text in ("", "0"):
        return None
    host, _, port = text.rpartition(":")
    if not port.isdigit() or not 0 <= int(port) <= 65535:
        raise click.BadParameter(f"{text!r} is not [HOST]:PORT", param=parameter)
    return Address(host.strip("[]") or "0.0.0.0", int(port))

"""`quorate version`."""

from __future__ import annotations

import platform
from importlib import metadata

import click

from quorate.cli.common import output_options
from quorate.cli.output import emit


@click.command("version", epilog="Example: quorate version --json")
@output_options
def command(output: str) -> None:
    """Print the version of quorate, of Python and of the API."""
    from quorate.api.resources import GROUP, VERSION

    found = {
        "quorate": metadata.version("quorate"),
        "python": platform.python_version(),
        "api": f"{GROUP}/{VERSION}",
    }
    emit(output, found, lambda: [f"quorate {found['quorate']} (Python {found['python']}, API {found['api']})"])

"""`quorate completion`: shell completion, made by click from the real commands and options."""

from __future__ import annotations

import click

from quorate.cli.common import Refused

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    epilog="""\b
Examples:
  source <(quorate completion bash)
  quorate completion fish > ~/.config/fish/completions/quorate.fish""",
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the code that makes SHELL complete commands, options and values."""
    from click.shell_completion import get_completion_class

    made = get_completion_class(shell)
    if made is None:
        raise Refused(f"this version of click cannot complete in {shell}")
    root = context.find_root()
    click.echo(made(root.command, {}, "quorate", "_QUORATE_COMPLETE").source())

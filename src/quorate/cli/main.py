"""The `quorate` command. Each command is a module of its own, imported only when it is called."""

from __future__ import annotations

import importlib

import click

COMMANDS = {
    "agent": "Run the node agent on this machine, or check what the machine lacks for it.",
    "crds": "Print the CustomResourceDefinitions, or write them to a directory.",
    "extender": "Score volume groups and reserve capacity for the scheduler, over HTTP.",
    "replay": "Replay recorded DRBD scenarios against the simulated kernel.",
    "up": "Serve the API on this machine, without a cluster.",
}
"""Commands and their short help; module `quorate.cli.<name>` has the click command `command`."""


class _LazyGroup(click.Group):
    """Lists commands without importing them: the command line starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"quorate.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


@click.group(cls=_LazyGroup)
@click.version_option(package_name="quorate")
def main() -> None:
    """Replicated block volumes for Kubernetes: LVM on several nodes, mirrored synchronously by DRBD 9."""

"""The `quorate` command. Each command is a module of its own, imported only when it is called.

Failures that a person can cause become one sentence and an exit code here, in one place (`common.as_click`).
"""

from __future__ import annotations

import importlib
import importlib.util

import click

COMMANDS = {
    "agent": "Run the node agent on this machine, or check what the machine lacks for it.",
    "completion": "Print the code that makes a shell complete quorate's commands.",
    "controller": "Run the controllers against a cluster.",
    "crds": "Print the CustomResourceDefinitions, or write them to a directory.",
    "demo": "Play a guided tour on a local cluster, with checks of the data.",
    "explain": "Say why a volume, replica, attachment or node is not as wished, and what helps.",
    "extender": "Score volume groups and reserve capacity for the scheduler, over HTTP.",
    "fault": "Cause faults in the local cluster: nodes, links, disks, agents.",
    "io": "Write to a volume of the local cluster and check every acknowledged write.",
    "model-check": "Search the states of small clusters for two writable sides or lost writes.",
    "plan": "Preview a change of a volume as steps, without changing anything.",
    "replay": "Replay recorded DRBD scenarios against the simulated kernel.",
    "replay-decision": "Take recorded decisions again and compare.",
    "status": "Show nodes, pools, volumes and what needs attention first.",
    "up": "Run a whole cluster on this machine: API, controllers, agents, simulated nodes.",
    "version": "Print the version.",
    "volume": "Create, attach, detach, resize, change or delete a volume.",
}
"""Commands and their short help; module `quorate.cli.<name>` has the click command `command`."""


def module_name(command: str) -> str:
    """The module of a command."""
    return f"quorate.cli.{command.replace('-', '_')}"


class _LazyGroup(click.Group):
    """Lists commands without importing them: the command line starts quickly."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in sorted(COMMANDS) if importlib.util.find_spec(module_name(name)) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(module_name(cmd_name)).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            from quorate.cli.common import as_click

            sentence = as_click(error)
            if sentence is None:
                raise
            raise sentence from error


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="quorate")
def main() -> None:
    """Replicated block volumes for Kubernetes: LVM on several nodes, mirrored synchronously by DRBD 9.

    \b
    Try it on this machine, without Kubernetes, root or kernel modules:
      quorate demo                   a guided tour of about a minute
      quorate up                     a local cluster to play with

    \b
    Against any cluster (kubeconfig):
      quorate status                 what is there, what needs attention first
      quorate explain volume NAME    why it waits, who must act, what helps
      quorate plan volume NAME --ftt 2 --gmdr 1    preview a change
    """

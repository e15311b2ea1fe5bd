"""Writes docs/cli.md from the real help texts: `python -m quorate.cli.reference > docs/cli.md`.

A test compares the file with what this prints, so the page cannot drift from the commands.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

from quorate.cli.main import main

WIDTH = 100
HEAD = """\
# Command line reference

Written by `python -m quorate.cli.reference`; do not edit.

Against which cluster a command works: `--kubeconfig`, else `KUBECONFIG`, else `.quorate/kubeconfig` in the present
directory (that is what `quorate up` writes), else `~/.kube/config`, else the service account of the pod.
Exit codes: 0 done; 1 the cluster refused, something failed or does not hold; 2 wrong input.

Shell completion: `source <(quorate completion bash)` (or `zsh`, `fish`).
"""


def _pages(command: click.Command, path: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    """A command and its subcommands, in order."""
    context = click.Context(
        command, info_name=path.rpartition(" ")[2], parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    )
    context.help_option_names = ["-h", "--help"]
    yield path, command.get_help(context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from _pages(found, f"{path} {name}", context)


def reference() -> str:
    """The whole page."""
    parts = [HEAD]
    for path, text in _pages(main, "quorate", None):
        body = "\n".join(line.rstrip() for line in text.rstrip().splitlines())
        parts.append(f"## {path}\n\n```text\n{body}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    click.echo(reference(), nl=False)

"""`quorate crds`: the CustomResourceDefinitions, printed or written to files."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("crds")
@click.option(
    "--write",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Write one file per kind to this directory instead of printing.",
)
def command(directory: Path | None) -> None:
    """Print the CustomResourceDefinitions as YAML."""
    from quorate.api.crd import all_crds, file_name, to_yaml

    definitions = all_crds()
    if directory is None:
        click.echo("---\n".join(to_yaml(definition) for definition in definitions), nl=False)
        return
    directory.mkdir(parents=True, exist_ok=True)
    written = {file_name(definition): to_yaml(definition) for definition in definitions}
    for name, text in written.items():
        (directory / name).write_text(text, encoding="utf-8")
    for stale in directory.glob("*.yaml"):
        if stale.name not in written:
            stale.unlink()
    click.echo(f"wrote {len(written)} files to {directory}")

"""Readers of what the tools print: text in, frozen values out, tolerant of the version differences of trap T10."""

from __future__ import annotations


class ParseError(ValueError):
    """Output that does not have the shape the tool documents."""

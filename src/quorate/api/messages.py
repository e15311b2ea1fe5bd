"""Texts that land in the API are cut to their limit (decision 12): the server would reject the whole write."""

from __future__ import annotations

ELLIPSIS = "…"


def cut(text: str, limit: int) -> str:
    """`text` if it fits, else its beginning with an ellipsis, no longer than `limit` characters."""
    if len(text) <= limit:
        return text
    return text[: max(limit - len(ELLIPSIS), 0)] + ELLIPSIS[:limit]

"""Secret (built-in). Its data is redacted in every text form."""

from __future__ import annotations

from quorate.api.meta import Object
from quorate.api.value import FrozenMap


class SecretData(FrozenMap):
    """A map whose text form shows keys only."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"SecretData({dict.fromkeys(self, '***')!r})"


EMPTY_SECRET_DATA = SecretData()


class Secret(Object):
    """A secret; `data` values are base64."""

    type: str = ""
    data: SecretData = EMPTY_SECRET_DATA
    string_data: SecretData = EMPTY_SECRET_DATA
    immutable: bool | None = None

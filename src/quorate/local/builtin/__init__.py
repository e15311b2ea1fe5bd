"""The built-in kinds the system touches, with hand-kept schemas and Kubernetes' own rules for writing them."""

from __future__ import annotations

from quorate.local.builtin.core import CORE
from quorate.local.builtin.events import EVENTS
from quorate.local.builtin.storage import STORAGE
from quorate.local.kinds import Kind

BUILTIN: tuple[Kind, ...] = (*CORE, *EVENTS, *STORAGE)

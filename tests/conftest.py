"""Settings of the whole suite."""

from __future__ import annotations

import os

from hypothesis import settings

# Continuous integration draws the same examples every time, so a red run means a changed program; everywhere else new
# examples are drawn, and a failure found there is pinned as an example.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("searching", deadline=None)
settings.load_profile("steady" if os.environ.get("CI") == "true" else "searching")

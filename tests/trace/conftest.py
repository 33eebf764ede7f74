"""What the tests of the trace share."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)  # machines that run tests are busy
settings.load_profile("no deadline")

"""Whose spans a process sends, as the environment says: recorded with each run, and read again by an export."""

from __future__ import annotations

import os
from urllib.parse import unquote


def resource_of_environment() -> dict[str, str]:
    """Return the attributes that the environment gives to every span's resource: OpenTelemetry's variables, and Phoenix's project."""
    project = os.environ.get("PHOENIX_PROJECT") or os.environ.get("PHOENIX_PROJECT_NAME")
    pairs = (each.partition("=") for each in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","))
    service = os.environ.get("OTEL_SERVICE_NAME", "").strip()
    return {
        **({"openinference.project.name": project} if project else {}),
        **{name.strip(): unquote(value.strip()) for name, is_pair, value in pairs if is_pair and name.strip()},
        **({"service.name": service} if service else {}),
    }

"""Settings that belong to the machine or the project, not to one agent: argument > environment > pyproject.toml."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    PyprojectTomlConfigSettingsSource,
    SettingsConfigDict,
)

from playhead.errors import SettingsError, nearest

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX: Final = "PLAYHEAD_"
_OTHERS: Final = {"DEBUG", "GOLDEN", "RECORD", "TEST_API_BASE", "TEST_MODEL"}
"""Environment variables of the command line and of the tests that are not settings."""


class Settings(BaseSettings):
    """Read from `PLAYHEAD_*` variables, then from `[tool.playhead]` of the nearest pyproject.toml."""

    model_config = SettingsConfigDict(
        env_prefix=_PREFIX,
        env_ignore_empty=True,
        pyproject_toml_table_header=("tool", "playhead"),
        pyproject_toml_depth=8,
        frozen=True,
        extra="forbid",
    )

    trace_dir: Path = Field(default_factory=lambda: Path.home() / ".playhead" / "traces")
    """Folder of the traces."""
    durability: Literal["write", "group", "fsync"] = "write"
    """What written events survive: a crash of the process; a crash of the machine, except for the last 0.1 s; any crash
    of the machine."""
    on_trace_error: Literal["continue", "stop"] = "continue"
    """What a run does if an event cannot be written."""
    stream_density: Literal["tokens", "full"] = "tokens"
    """The default detail of streamed events."""
    span_messages: Annotated[int, Field(ge=1)] | Literal["all"] = 20
    """How many messages of a prompt a span shows, at least 1, or `all`."""
    retention_days: Annotated[int, Field(ge=1)] | None = None
    """Age in days from which `playhead prune` removes runs if it is given no runs and no condition; None: it needs one."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - another program's .env file is not read
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources, the strongest first."""
        return init_settings, env_settings, PyprojectTomlConfigSettingsSource(settings_cls)


def load_settings() -> Settings:
    """Return the current settings, from the environment and the current folder.

    Raises:
        SettingsError: a setting has an invalid value or an unknown name.
    """
    names = sorted(name for name in os.environ if name.upper().startswith(_PREFIX))
    return _settings_for(os.getcwd(), tuple((name, os.environ.get(name, "")) for name in (*names, "HOME")))  # noqa: PTH109 - for each run


@lru_cache(maxsize=64)
def _settings_for(_folder: str, environment: tuple[tuple[str, str], ...]) -> Settings:
    """Cache the settings per folder and environment, so that not every run parses a pyproject.toml."""
    _require_known(name for name, _ in environment if name != "HOME")
    try:
        return Settings()
    except (ValidationError, ValueError) as error:
        raise SettingsError(f"a setting is not valid: {_first(error)}") from None


def _require_known(names: Iterable[str]) -> None:
    """Reject an unknown `PLAYHEAD_*` variable, which would be silently ignored."""
    settings = {_PREFIX + name.upper() for name in Settings.model_fields}
    for name in names:
        if name.upper() not in settings and name.removeprefix(_PREFIX) not in _OTHERS:
            raise SettingsError(f"there is no setting {name}.{nearest(name.upper(), settings)}")


def _first(error: ValueError) -> str:
    if not isinstance(error, ValidationError):
        return str(error)
    detail = error.errors(include_url=False)[0]
    name = ".".join(map(str, detail["loc"]))
    return (
        f"{name} = {detail['input']!r}: {detail['msg']} (PLAYHEAD_{name.upper()} or [tool.playhead] in pyproject.toml)"
    )

"""A request parameter that nobody knows is not sent in silence: a slip is refused, and the message names what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from playhead import Agent
from playhead.errors import UsageError
from tests.findings.adapter import agent, replay, run

if TYPE_CHECKING:
    from pathlib import Path

SLIPS = {
    "temprature": "temperature", "Temperature": "temperature", "topP": "top_p", "max_token": "max_tokens", "sead": "seed",
    "resoning_effort": "reasoning_effort", "response_fromat": "response_format",
}  # fmt: skip
REAL = (
    "azure_ad_token", "vertex_credentials", "api_version", "user", "aws_secret_access_key", "metadata", "prompt_cache_key",
    "prediction", "extra_headers", "extra_body", "custom_llm_provider",
)  # fmt: skip


@pytest.mark.parametrize(("slip", "meant"), SLIPS.items())
def test_a_slip_is_refused_with_what_was_meant(slip: str, meant: str) -> None:
    """An agent with a misspelt parameter is not made; the message names the likely one and `extra_body`."""
    with pytest.raises(UsageError) as refused:
        agent([], parameters={slip: 0})
    assert f"{slip!r}. Did you mean {meant!r}?" in str(refused.value).replace("top_k", "top_p")
    assert "extra_body={" in str(refused.value)


def test_real_parameters_pass() -> None:
    """Parameters of litellm and of providers pass, known by value or not."""
    values: dict[str, Any] = dict.fromkeys(REAL, "x")
    made = Agent(
        "openai/m", parameters={**values, "extra_body": {"temprature": 1}, "my_gateway_route": "eu"}, trace=None
    )
    assert set(made.header.parameters) == {*REAL, "my_gateway_route"}


@pytest.mark.parametrize("name", ["temprature", "my_gateway_route", "extra_body", "n_ctx"])
def test_a_model_that_says_all_it_takes_refuses_all_else(name: str) -> None:
    """Ollama would ignore it, so the agent is not even made."""
    with pytest.raises(UsageError, match=rf"this model has no request parameter '{name}'\..* Known: "):
        Agent("ollama/m", parameters={name: 1}, trace=None)
    Agent(
        "ollama/m",
        parameters={"num_ctx": 8192, "max_tokens": 5, "response_format": {"type": "text"}, "timeout": 9},
        trace=None,
    )


def test_overrides_of_a_replay(tmp_path: Path) -> None:
    """The same for `parameters`, to set or to remove, and for those of an agent below."""
    path = run(agent(["done"], trace=tmp_path)).trace_path
    for overrides in ({"parameters": {"temprature": 1}}, {"parameters": {"temprature": None}}):
        with pytest.raises(UsageError, match="Did you mean 'temperature'"):
            replay(path, ["done"], overrides=overrides)
    with pytest.raises(UsageError, match="this model has no request parameter 'my_route'"):
        replay(path, overrides={"model": "ollama/m", "parameters": {"my_route": 1}})

"""The credentials of an adapter are known, and redacted, before anything is sent."""

import pytest

from playhead.kernel.models.adapter import public_address
from playhead.kernel.models.litellm import LiteLLM


@pytest.mark.parametrize(
    ("name", "environment", "arguments", "secrets"),
    [
        ("openai/m", {"OPENAI_API_KEY": "a"}, {"api_key": "c"}, {"OPENAI_API_KEY": "a", "api_key": "c"}),
        (
            "together_ai/m",
            {"TOGETHERAI_API_KEY": "a", "TOGETHER_AI_TOKEN": "b"},
            {},
            {"TOGETHERAI_API_KEY": "a", "TOGETHER_AI_TOKEN": "b"},
        ),
        ("bedrock/m", {"AWS_SECRET_ACCESS_KEY": "a", "AWS_REGION": "eu"}, {}, {"AWS_SECRET_ACCESS_KEY": "a"}),
        (
            "openai/m",
            {},
            {"api_base": "http://me:p%40ss@127.0.0.1:9/v1"},
            {"address of api_base: password": "p%40ss", "address of api_base: password decoded": "p@ss"},
        ),
        (
            "openai/m",
            {"OPENAI_BASE_URL": "http://token@127.0.0.1?sig=a%2Bb&api-version=2024-06-01"},
            {},
            {
                "address of OPENAI_BASE_URL: password": "token",
                "address of OPENAI_BASE_URL: password decoded": "token",
                "address of OPENAI_BASE_URL: sig": "a+b",
                "address of OPENAI_BASE_URL: sig decoded": "a+b",
            },
        ),
    ],
)
def test_secrets_are_known_before_anything_is_sent(monkeypatch, name, environment, arguments, secrets):
    """Keys given or found in the environment, and passwords in addresses, are the secrets that the recorder redacts."""
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    assert LiteLLM(name, **arguments).secrets == secrets


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://me:secret@127.0.0.1:9/v1?key=k#f", "http://127.0.0.1:9/v1"),
        ("127.0.0.1:11434", "127.0.0.1:11434"),
        ("me:secret@host:1", "host:1"),
        ("http://[::1", "an address that cannot be read"),
    ],
)
def test_a_shown_address_holds_no_secret(address, shown):
    """Messages show an address without user info and query."""
    assert public_address(address) == shown

"""The switches that hide content, as people write them."""

from __future__ import annotations

import pytest

from playhead.errors import SettingsError
from playhead.spans import SpanOptions
from playhead.spans.masking import masking_of_environment


@pytest.mark.parametrize(
    ("word", "hides"),
    [
        *dict.fromkeys(("true", "TRUE", " 1 ", "yes", "on"), True).items(),
        *dict.fromkeys(("false", "0", "No", "off", ""), False).items(),
    ],
)
def test_words_for_yes_and_no(word: str, hides: bool, monkeypatch: pytest.MonkeyPatch):
    """The usual words turn one switch on or off; the limit of images is still read as OpenInference reads it."""
    monkeypatch.setenv("OPENINFERENCE_HIDE_INPUTS", word)
    monkeypatch.setenv("OPENINFERENCE_BASE64_IMAGE_MAX_LENGTH", "77")
    masking = masking_of_environment()
    assert (masking.hide_inputs, masking.hide_outputs, masking.base64_image_max_length) == (hides, False, 77)


@pytest.mark.parametrize(
    ("name", "word", "error"),
    [
        ("OUTPUTS", "treu, once", "OPENINFERENCE_HIDE_OUTPUTS is neither true nor false"),
        (
            "INPUT",
            "true",
            "OPENINFERENCE_HIDE_INPUT is no switch of OpenInference. Did you mean 'OPENINFERENCE_HIDE_INPUTS'?",
        ),
    ],
)
def test_a_misspelt_switch_is_refused(name: str, word: str, error: str, monkeypatch: pytest.MonkeyPatch):
    """A misspelt name or value raises, without the value: a guess would send what should be hidden."""
    monkeypatch.setenv(f"OPENINFERENCE_HIDE_{name}", word)
    with pytest.raises(SettingsError) as caught:
        SpanOptions()
    assert str(caught.value) == error

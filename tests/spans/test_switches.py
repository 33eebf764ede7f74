"""The switches that hide content, as people write them."""

from __future__ import annotations

import pytest

from playhead.spans.masking import masking_of_environment


@pytest.mark.parametrize(
    ("word", "hides"),
    [
        *dict.fromkeys(("true", "TRUE", " 1 ", "yes", "on"), True).items(),
        *dict.fromkeys(("false", "0", "No", "off", ""), False).items(),
    ],
)
def test_words_for_yes_and_no(
    word: str, hides: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """The usual words mean what they mean, and nothing is said about them."""
    monkeypatch.setenv("OPENINFERENCE_HIDE_INPUTS", word)
    masking = masking_of_environment()
    assert (masking.hide_inputs, masking.hide_outputs, caplog.messages) == (hides, False, [])


def test_any_other_word_hides(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    """A misspelt word hides what the switch is about, and is said once, without its value."""
    monkeypatch.setenv("OPENINFERENCE_HIDE_OUTPUTS", "treu, once")
    assert [masking_of_environment().hide_outputs for _ in range(2)] == [True, True]
    assert caplog.messages == [
        "OPENINFERENCE_HIDE_OUTPUTS is neither true nor false, so it is taken as true: what it is about is hidden"
    ]


def test_a_switch_that_is_none(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture):
    """A variable that is called like a switch and is none is named, with the one that was meant."""
    monkeypatch.setenv("OPENINFERENCE_HIDE_INPUT", "true")
    assert masking_of_environment().hide_inputs is False
    assert caplog.messages == [
        "OPENINFERENCE_HIDE_INPUT hides nothing: there is no such switch. Did you mean 'OPENINFERENCE_HIDE_INPUTS'?"
    ]


def test_the_limit_of_images_is_still_read(monkeypatch: pytest.MonkeyPatch):
    """What is no switch is left to OpenInference."""
    monkeypatch.setenv("OPENINFERENCE_BASE64_IMAGE_MAX_LENGTH", "77")
    assert masking_of_environment().base64_image_max_length == 77

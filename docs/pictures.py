"""The pictures of pages: `python docs/pictures.py` records runs of a scripted agent and takes their pages in a Chromium.

The agent is asked for a refund. The payment fails, and the model says that it was made; with another prompt it does not.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from playhead import Agent, load_recording, tool
from playhead.cli.view import choose
from playhead.diagnose.many_page import render_many
from playhead.diagnose.report_page import render_pair, render_report
from playhead.errors import ModelError
from playhead.testing import ScriptedModel, TickingClock, call, calls, text

if TYPE_CHECKING:
    from playhead.trace.types import Completion, Request

IMAGES = Path(__file__).with_name("images")
TASK = "Order 1042 arrived broken. Refund it, and write the customer a short note."
PROMPT = (
    "You answer customers. Refund what the policy allows, and never say that something was done unless a tool says so."
)
MODELS = ("openai/gpt-4o", "anthropic/claude-sonnet-4-5")
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


class Clock(TickingClock):
    """A clock on which model calls and tools take time."""

    def wait(self, milliseconds: float) -> None:
        """Let time pass."""
        self._now_us += int(milliseconds * 1000)


clock = Clock(step_us=700)


class Model(ScriptedModel):
    """A scripted model that takes its time, and costs something."""

    async def complete(self, request: Request) -> Completion:
        """Answer after a while."""
        found = await super().complete(request)
        clock.wait(600 + 14 * len(found.text) + 90 * len(found.tool_calls))
        words = sum(len(str(message.content)) for message in request.messages) // 4
        usage = found.usage.model_copy(update={"input_tokens": words, "output_tokens": 20 + len(found.text) // 4})
        return replace(found, usage=usage, cost_usd=round(usage.input_tokens * 2.5e-6 + usage.output_tokens * 1e-5, 4))


@tool(read_only=True)
def order(number: int) -> dict[str, Any]:
    """Look an order up."""
    clock.wait(180)
    return {"number": number, "customer": "Ann Field", "total": "84.90 EUR", "status": "delivered", "paid_by": "card"}


@tool(read_only=True)
def policy(topic: str) -> str:
    """Look a policy of the shop up."""
    clock.wait(420)
    return f"{topic}: within 30 days of delivery in full, to the means of payment, after a photo of the damage."


@tool
def refund(number: int, amount: float) -> str:
    """Pay an order back."""
    clock.wait(2600)
    raise ConnectionError(
        f"the payment service did not answer for order {number}: 503, nothing was paid ({amount} EUR)"
    )


def why(reasons: dict[int, str], said: str = "") -> str:
    """Return what a model says before calls with these reasons."""
    blocks = [
        f'<rationale call="{number}">{{"why": "{reason}", "confidence": 0.9}}</rationale>'
        for number, reason in reasons.items()
    ]
    return "\n".join([said, *blocks])


LOOK_UP = calls(
    call("order", number=1042),
    call("policy", topic="broken on arrival"),
    text=why(
        {1: "the amount and the means of payment are in the order", 2: "whether a photo is needed first"},
        "I look up the order and the policy.",
    ),
)
PAY = calls(call("refund", number=1042, amount=84.90), text=why({1: "the policy allows the whole amount"}))
CLAIM = text(
    "Dear Ann, I have refunded 84.90 EUR to your card. It arrives within 5 days. We are sorry for the trouble."
)
ADMIT = text("Dear Ann, our payment service did not answer, so nothing has been refunded yet. We try again today.")


def runs(folder: Path) -> tuple[Any, Any]:
    """Return the recording of the run, and that of its replay."""
    agent = Agent(
        Model([LOOK_UP, PAY, PAY, CLAIM], name="openai/gpt-4o"),
        name="support",
        tools=[order, policy, refund],
        trace=folder,
        clock=lambda: clock,
    )
    original = load_recording(agent.run_sync(TASK).trace_path or "")
    replay = original.replay_sync(model=Model([LOOK_UP, PAY, ADMIT], name="openai/gpt-4o"), system_prompt=PROMPT)
    return original, replay.recording


REQUESTS = {
    "Order {} arrived broken. Refund it.": "Your refund for order {} is on its way.",
    "Where is the parcel of order {}?": "Order {} was handed to the courier this morning.",
    "Send order {} to 4 Mill Lane instead.": "Order {} goes to 4 Mill Lane now.",
    "Cancel order {}.": "Order {} is cancelled, nothing was charged.",
}


def list_of_runs(folder: Path) -> str:
    """Return the list of many runs, as `playhead view` shows it: some fail, some are stopped."""
    chance = Random(3)  # noqa: S311 - the same pictures each time
    for number in range(4000, 4140):
        task, answer = chance.choice([*REQUESTS.items()])
        fate = chance.choices(("answered", "failed", "stopped"), (85, 6, 9))[0]
        turns: list[Any] = [
            calls(call("order", number=number), text="Where is it? " * chance.randint(0, 25))
            for _ in range(chance.choice((1, 1, 2, 3)))
        ]
        model = Model(
            [*turns, *([] if fate == "failed" else [text(answer.format(number))])], name=chance.choice(MODELS)
        )
        limit = 1 if fate == "stopped" else 9
        agent = Agent(model, name="support", tools=[order], trace=folder, clock=lambda: clock, max_iterations=limit)
        clock.wait(chance.lognormvariate(13, 1))
        with suppress(ModelError):
            agent.run_sync(task.format(number))
    runs_, fields, _ = choose(folder, [])
    return render_many(runs_, fields=fields)


def take(pages: dict[str, tuple[str, Any, Any]]) -> None:
    """Take the pictures: of each the page, the size of the window, and `light` or `dark`."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - of the dependency group `browser`

    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (html, size, scheme) in pages.items():
            file = Path(folder, f"{name}.html")
            file.write_text(html, encoding="utf-8")
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(file.as_uri())
            page.screenshot(path=IMAGES / f"{name}.png")


def main() -> None:
    """Record, render, and take the pictures."""
    with tempfile.TemporaryDirectory() as folder:
        pair = runs(Path(folder))
        one, two = render_report(pair[0]), render_pair(*pair)
        many = list_of_runs(Path(folder, "many"))
    take(
        {
            "report-light": (one, WIDE, "light"),
            "report-dark": (one, WIDE, "dark"),
            "report-phone": (one, PHONE, "light"),
            "report-phone-dark": (one, PHONE, "dark"),
            "view-light": (many, WIDE, "light"),
            "view-dark": (many, WIDE, "dark"),
            "view-phone": (many, PHONE, "light"),
            "report-against": (two, {"width": 1440, "height": 1250}, "light"),
        }
    )


if __name__ == "__main__":
    main()

"""A case study on a real model: what do new prompts, and another temperature, do to 30 recorded runs?

`make case-study` runs it. The agent names the team that a ticket of support is for. The model server is the one at PLAYHEAD_TEST_API_BASE, or
http://127.0.0.1:8091/v1; docs/guides/many-runs.md has what this printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from playhead import Agent, Context, LiteLLM

if TYPE_CHECKING:
    from playhead import Recording

API_BASE = os.environ.get("PLAYHEAD_TEST_API_BASE", "http://127.0.0.1:8091/v1")
MODEL = os.environ.get("PLAYHEAD_TEST_MODEL", "openai/qwen2.5-coder-1.5b")
FOLDER = Path("build/case-study")
PROMPT = """\
You route tickets of a shop for hiking gear to one of three teams.

billing: invoices, payments, refunds, prices.

delivery: parcels that are late, lost or at the wrong address.

repair: things that are broken, torn or leak.

Answer with one word: billing, delivery or repair."""
NEW_PROMPT = f"""\
{PROMPT}

Read the ticket to its end before you answer.

Explain your choice to the customer in a friendly sentence."""
OTHER_PROMPT = f"""\
{PROMPT}

Read the ticket to its end before you answer.

Write a whole sentence."""
TICKETS = {
    "billing": (
        "I was charged twice for one order.",
        "Please send me the invoice for the blue jacket.",
        "My card was refused, but the money is gone.",
        "The refund for the stove has not arrived.",
        "Why is the tent cheaper in your newsletter?",
        "Can I pay the boots in two parts?",
        "The invoice has the wrong company name.",
        "You took 20 euros too much from my account.",
        "I want my money back for the unused rope.",
        "Does the price include tax?",
    ),
    "delivery": (
        "My parcel should have been here on Monday. I am furious!",
        "The parcel went to my old address.",
        "Tracking has said 'in transit' for nine days. I leave tomorrow, hurry!",
        "The neighbour never got my parcel.",
        "Where is my order?",
        "The courier left the box in the rain at number 12, I live at 21. Outrageous!",
        "When will the sleeping bag arrive? I need it tonight!",
        "The parcel was sent to Spain, I live in Sweden.",
        "Only one of my two parcels came.",
        "The driver did not ring and took the parcel back.",
    ),
    "repair": (
        "The zip of my tent is torn.",
        "My water bottle leaks. This is a disgrace!",
        "The sole came off my left boot.",
        "The stove does not light any more. We are on the mountain, quick!",
        "A pole of the tent is broken.",
        "The air mattress goes flat every night. I am sick of it!",
        "The headlamp does not turn on.",
        "The strap of my backpack is ripped.",
        "My rain jacket lets water in at the shoulders. What junk!",
        "The handle of the pan broke off.",
    ),
}
TEAM_OF = {ticket: team for team, tickets in TICKETS.items() for ticket in tickets}


def routed(answer: object, recording: Recording) -> bool:
    """Accept the name of the right team, and nothing else."""
    return str(answer).strip(" .\n").lower() == TEAM_OF[str(recording.header.task)]


def record() -> None:
    """Record a run of each ticket, unless that has been done."""
    parameters = {"temperature": 0.8, "max_tokens": 8}
    model = LiteLLM(MODEL, api_base=API_BASE)
    agent = Agent(
        model,
        system_prompt=PROMPT,
        parameters=parameters,
        trace=FOLDER,
        context=Context(rationale=False, meta_tools=()),
    )
    for number, ticket in enumerate(TEAM_OF):
        if not (FOLDER / f"ticket-{number:02}.jsonl").exists():
            agent.run_sync(ticket, run_id=f"ticket-{number:02}")


def playhead(*arguments: str) -> None:
    """Show a command, and run it as a user would."""
    print("$ playhead", *(f"'{each}'" if " " in each else each for each in arguments), flush=True)
    subprocess.run([sys.executable, "-m", "playhead", *arguments], check=False)  # noqa: S603 - our own


def main() -> None:
    """Record, and ask for a verdict on each of three changes, and for the paragraph that did it."""
    os.environ |= {"OPENAI_API_KEY": "not-needed", "PLAYHEAD_TRACE_DIR": str(FOLDER), "COLUMNS": "100"}
    record()
    check = ("--success", "examples.many_runs.tickets:routed", "--margin", "0.1", "--baseline", "--concurrency", "1")
    every = ("replay", "--last", "30", "--api-base", API_BASE, *check)
    for group, prompt in (("new-prompt", NEW_PROMPT), ("other-prompt", OTHER_PROMPT)):
        (FOLDER / f"{group}.md").write_text(prompt, encoding="utf-8")
        playhead(*every, "--system-prompt", f"{FOLDER}/{group}.md", "--repeat", "2", "--group", group)
    blamed = (
        "blame",
        "ticket-27",
        "--success",
        "examples.many_runs.tickets:routed",
        "--repeat",
        "8",
        "--api-base",
        API_BASE,
    )
    playhead(*blamed, "--system-prompt", f"{FOLDER}/other-prompt.md")
    playhead(*every, "--set", "temperature=0", "--repeat", "1", "--group", "temperature-0")


if __name__ == "__main__":
    main()

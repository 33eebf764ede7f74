"""What the spans of each scene have to be: a line for each, below its parent and in the order in which they began."""

from __future__ import annotations

import re
from typing import Final

from tests.backends.scenes import MODEL

_ALONE: Final = re.compile(r"LLM(?! llm:)( \w+)?")
_TREES: Final = {
    "adaptive": """
AGENT agent:guide
  LLM select
  LLM
  TOOL tool:lookup
  LLM
""",
    "autonomous": """
AGENT agent:guide
  LLM
  LLM
  TOOL tool:lookup
  LLM
  TOOL tool:calculator
  LLM
  TOOL tool:finish
""",
    "chain-of-thought": """
AGENT agent:guide
  LLM
  TOOL tool:lookup
  LLM
""",
    "code-action": """
AGENT agent:guide
  LLM program
  TOOL tool:run-program
    TOOL tool:lookup
    TOOL tool:calculator
  LLM program
""",
    "direct": """
AGENT agent:guide
  LLM
  TOOL tool:lookup
  LLM
""",
    "plan-execute-reflect": """
AGENT agent:guide
  LLM plan
  CHAIN step:s1
    TOOL tool:lookup
  CHAIN step:s2
    LLM step
  CHAIN step:s3
    TOOL tool:send
  LLM reflect
  LLM answer
""",
    "reactive": """
AGENT agent:guide
  LLM
  TOOL tool:lookup
  LLM
  TOOL tool:calculator
  LLM
""",
    "reflexion": """
AGENT agent:guide
  CHAIN attempt:1
    LLM generate
    TOOL tool:lookup
    LLM generate
    TOOL tool:calculator
    LLM generate
    LLM critique
  CHAIN attempt:2
    LLM improve
    LLM critique
""",
    "tree-of-thought": """
AGENT agent:guide
  CHAIN depth:1
    LLM expand
    LLM score
    LLM score
  LLM think
  TOOL tool:lookup
  LLM think
  TOOL tool:calculator
  LLM think
""",
    "sub-agents": """
AGENT agent:guide
  LLM
  TOOL tool:researcher
    AGENT agent:researcher
      LLM
      TOOL tool:lookup
      LLM
  TOOL tool:researcher
    AGENT agent:researcher
      LLM
      TOOL tool:lookup
      LLM
  LLM
""",
    "parallel-calls": """
AGENT agent:guide
  LLM
  TOOL tool:lookup
  TOOL tool:lookup
  TOOL tool:lookup
  LLM
""",
    "failed-tool": """
AGENT agent:guide
  LLM
  TOOL tool:broken ! ConnectionError: the database is gone; it was asked for Mount Zed
  LLM
  TOOL tool:lookup
  LLM
""",
    "retried-model": """
AGENT agent:guide
  LLM ! ModelUnavailableError: overloaded
  LLM
  TOOL tool:lookup
  LLM
""",
    "failed-model": """
AGENT agent:guide ! llm_error: no such model
  LLM
  TOOL tool:lookup
  LLM ! ModelRequestError: no such model
""",
    "killswitch": """
AGENT agent:guide
  LLM
  TOOL tool:lookup
  LLM
  TOOL tool:lookup
""",
    "images": """
AGENT agent:guide
  LLM
""",
    "cached": """
AGENT agent:guide
  LLM
""",
    "unknown-model": """
AGENT agent:guide
  LLM llm:acme/alpha
""",
    "long-thread": """
AGENT agent:guide
  LLM
  TOOL tool:lookup
  LLM
""",
    "hostile": """
AGENT agent:guide
  LLM
  TOOL tool:send
  LLM
""",
}
_TREES["session-1"] = _TREES["session-2"] = _TREES["reactive"]
_TREES["words-below"] = _TREES["direct"]


def tree_of(scene: str) -> list[str]:
    """Return the lines of a scene; `LLM` alone, or with a purpose, is a call of the model that most have."""
    return [_ALONE.sub(_named, line) for line in _TREES[scene].strip().splitlines()]


def _named(call: re.Match[str]) -> str:
    purpose = f"{call[1].strip()} " if call[1] else ""
    return f"LLM llm:{purpose}{MODEL}"

"""Tree of thought: think in several directions, score each, follow the best with the tools (Yao et al. 2023, arXiv:2305.10601).

First comes a breadth-first search without tools: every kept thought is expanded, every child gets its own score, and thoughts
with low scores are pruned at every depth. Then the agent's loop follows the best path.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field

from playhead.kernel import REACT, KernelState, Purpose, Session, Step, Strategy, run_kernel, transition
from playhead.kernel.forms import ask_for, form_prompt
from playhead.kernel.lifecycle.steering import steered
from playhead.kernel.meta_tools import is_meta
from playhead.kernel.passes import fresh_thread, in_phase
from playhead.trace.events import AlternativesConsidered, Critique, DecisionEvaluated, Thought
from playhead.trace.types import Alternative, text_of

if TYPE_CHECKING:
    from playhead.kernel.forms import Form

NAME: Final = "tree-of-thought"
UNKNOWN: Final = 0.5
"""The score of a thought to which the model gave none."""
_EXPAND: Final = "{task}\n\n{tools}{path}Do not solve it yet. Propose {breadth} different {what}, in one or two sentences each. {form}"
_SCORE: Final = "{task}\n\n{tools}{path}How likely does this line of thought, and above all its last step, lead to a correct solution? {form}"
_FOLLOW: Final = (
    "{task}\n\n{path}This line of thought was found the best of several. Follow it, leave it where results speak against it, "
    "and answer the task."
)


class Thoughts(BaseModel):
    """Thoughts that may follow one."""

    model_config: ClassVar[ConfigDict] = ConfigDict(str_strip_whitespace=True, str_min_length=1)

    thoughts: list[str] = Field(min_length=1)


class Score(BaseModel):
    """How likely a thought leads to a solution."""

    score: int = Field(ge=0, le=10, examples=[7], description="0: not at all; 10: certainly")


class TreeOfThought(Strategy):
    """Search among thoughts, then act on the best path of them."""

    name = NAME
    aliases = ("tot",)
    known_for = "compares several approaches before it acts; for creative and open problems"
    phases = ("depth",)
    purposes = (
        Purpose(name="expand", asks_for="thoughts that may follow one"),
        Purpose(name="score", asks_for="how likely a thought leads to a solution"),
    )

    breadth: int = Field(default=3, ge=1, le=8)
    """The number of thoughts proposed at once, and the maximum kept at each depth."""
    depth: int = Field(default=3, ge=1, le=8)
    """The maximum depth of the tree."""
    pruning_threshold: float = Field(default=0.5, ge=0, le=1)
    """A thought with a lower score is not followed."""
    good_enough: float | None = Field(default=0.9, ge=0, le=1)
    """The score that ends the search; None to always search to the full depth."""

    async def run(self, state: KernelState, session: Session) -> KernelState:
        """Search, then act on the best path; if continued, it does not search again."""
        if NAME in state.meta:
            return await run_kernel(REACT, state, session)
        state, best = await self._search(state, session)
        state = transition(state, meta={**state.meta, NAME: best.name or None})
        if best.path:
            text = _FOLLOW.format(task=text_of(session.task), path=_path_text(best))
            state = transition(state, thread=await fresh_thread(session, text))
        else:
            why = "no first thought reached the pruning threshold: the task is solved by ReAct alone, without a path"
            session.emit(DecisionEvaluated(decision=f"{NAME}: no path", rationale=why))
            session.at.delegate("reactive")
        return await run_kernel(REACT, state, session)

    async def _search(self, state: KernelState, session: Session) -> tuple[KernelState, Node]:
        """Return the best thought of the deepest level with kept thoughts; the root if no first thought was kept."""
        kept = [Node("", ())]
        for depth in range(1, self.depth + 1):
            with in_phase(session, "depth", depth):
                children: list[Node] = []
                for parent in kept:
                    state, found = await self._children(state, session, parent)
                    children += found
                survivors = self._survivors(children, depth, session)
            if not survivors:
                break
            kept = survivors
            if self.good_enough is not None and kept[0].score >= self.good_enough and depth < self.depth:
                why = f"thought {kept[0].name} scores {kept[0].score:.2f}, and {self.good_enough:.2f} is good enough"
                session.emit(DecisionEvaluated(decision=f"{NAME}: stop at depth {depth}", rationale=why))
                break
        return state, kept[0]

    async def _children(self, state: KernelState, session: Session, parent: Node) -> tuple[KernelState, list[Node]]:
        """Return the thoughts that may follow one, each with its own score."""
        what = "next steps" if parent.path else "approaches"
        state, found = await _ask(
            state, session, _EXPAND, parent, Thoughts, purpose="expand", breadth=self.breadth, what=what
        )
        thoughts = [] if found is None else found.thoughts[: self.breadth]
        above = f"{parent.name}." if parent.name else ""
        nodes = [Node(f"{above}{number}", (*parent.path, text)) for number, text in enumerate(thoughts, 1)]
        steps = tuple(Step("thought", f"{node.name}: {node.text}", state.iteration) for node in nodes)
        state, request = transition(state, steps=state.steps + steps), session.model.requests - 1
        for node in nodes:
            session.emit(Thought(request=request, text=node.text, name=node.name))
        for node in nodes:
            state, node.score = await self._score(state, session, node)
        return state, nodes

    async def _score(self, state: KernelState, session: Session, node: Node) -> tuple[KernelState, float]:
        """Return the model's score of a thought; record it if the model gave none."""
        state, found = await _ask(state, session, _SCORE, node, Score, purpose="score")
        if found is None:
            decision = f"{NAME}: thought {node.name} is given the score {UNKNOWN}"
            session.emit(DecisionEvaluated(decision=decision, rationale="the model gave it none"))
            return state, UNKNOWN
        score = found.score / 10
        satisfied = score >= self.pruning_threshold
        session.emit(Critique(text=str(found.score), score=score, satisfied=satisfied, thought=node.name))
        return state, score

    def _survivors(self, children: list[Node], depth: int, session: Session) -> list[Node]:
        """Return the thoughts to follow, best first; record the others with the reason."""
        good = [node for node in children if node.score >= self.pruning_threshold]
        kept = sorted(good, key=lambda node: -node.score)[: self.breadth]  # stable: equal scores keep their order
        low, others = f"it is below {self.pruning_threshold:.2f}", f"{self.breadth} others score at least as high"
        pruned = tuple(
            Alternative(name=node.name, option=node.text, rejected_because=f"score {node.score:.2f}: {why}")
            for node, why in ((node, others if node in good else low) for node in children if node not in kept)
        )
        scores = ", ".join(f"{node.name} ({node.score:.2f})" for node in kept) or "none"
        decision, names = f"{NAME}: depth {depth}: keep {scores}", tuple(node.name for node in kept)
        session.emit(AlternativesConsidered(decision=decision, alternatives=pruned, kept=names))
        return kept


@dataclass(eq=False, slots=True)
class Node:
    """A thought and its parent."""

    name: str
    """Its place in the tree: `2.1` is the first child of the second thought."""
    path: tuple[str, ...]
    """The thoughts from the first to this one."""
    score: float = UNKNOWN

    @property
    def text(self) -> str:
        """The thought itself."""
        return self.path[-1]


async def _ask(  # noqa: PLR0913 - question, thought and form
    state: KernelState, session: Session, prompt: str, node: Node, form: type[Form], *, purpose: str, **more: object
) -> tuple[KernelState, Form | None]:
    """Ask the model about a thought, without tools and outside the turns."""
    specs = [spec for name, spec in session.offered_specs().items() if not is_meta(session, name)]
    listed = "\n".join(f"- {spec.name}: {spec.description}" for spec in specs)
    # Thoughts must be about tools that exist.
    tools = f"Tools that can be used afterwards, not now:\n{listed}\n\n" if listed else ""
    fields = {"task": text_of(session.task), "tools": tools, "path": _path_text(node), "form": form_prompt(form)}
    session.reach(await steered(state, session, f"request {session.model.requests}"))
    session.require_running()
    thread = await fresh_thread(session, prompt.format(**fields, **more))
    return await ask_for(state, session, thread, form, purpose=purpose, retries=1)


def _path_text(node: Node) -> str:
    """Return a line of thought as text for a model; empty for the root."""
    steps = "".join(f"{number}. {each}\n" for number, each in enumerate(node.path, 1))
    return f"The line of thought:\n{steps}\n" if steps else ""

"""In which order the steps of a plan may run, and which may run beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.kernel.plan.references import references

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from playhead.kernel.plan.types import Plan, PlanMode, PlanStep


def needs(step: PlanStep) -> list[str]:
    """Return the steps that have to be completed before this one: those it names, and those it refers to."""
    return list(dict.fromkeys((*step.depends_on, *references([step.instruction, step.tool_args]))))


def compute_waves(steps: Sequence[PlanStep], mode: PlanMode) -> list[list[PlanStep]]:
    """Return the steps that are not yet completed in waves: all of a wave may begin when those before it are completed.

    In `linear` mode a wave is one step. Steps that can never begin are in no wave: those on a cycle, and those that need a
    step that is not there, has failed, or needs one that has.
    """
    open_steps = [each for each in steps if each.status in ("pending", "in_progress")]
    done = {each.id for each in steps if each.status == "completed"}
    if mode == "linear":
        waves = []
        for step in open_steps:
            if done.issuperset(needs(step)):
                done.add(step.id)
                waves.append([step])
        return waves
    return _layers(open_steps, done)


def blocked(plan: Plan) -> dict[str, str]:
    """Return the pending steps that can never begin, with the step for which each of them waits in vain."""
    can_run = {each.id for wave in compute_waves(plan.steps, plan.mode) for each in wave}
    can_run |= {each.id for each in plan.having("completed")}
    waiting = {each.id: needs(each) for each in plan.having("pending") if each.id not in can_run}
    # In `linear` mode a step may wait for one that comes after it.
    return {
        step_id: next((each for each in needed if each not in can_run), needed[0])
        for step_id, needed in waiting.items()
    }


def waiting_for(plan: Plan, failed: Sequence[str], needed_by: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the pending steps that wait for failed ones, also by way of others, with the step for which each of them waits."""
    reached, waiting = list(failed), {}
    for step_id in reached:
        for other in needed_by.get(step_id, ()):
            if other not in waiting and plan.step(other).status == "pending":
                waiting[other] = step_id
                reached.append(other)
    return waiting


def find_cycle(steps: Sequence[PlanStep]) -> list[str] | None:
    """Return the ids of steps that wait for each other in a circle, or None when there is none."""
    edges = {each.id: needs(each) for each in steps}
    stuck = edges.keys() - {each.id for wave in _layers(steps, set(), known=edges) for each in wave}
    stuck = _only_on_cycles(stuck, edges)
    if not stuck:
        return None
    path = [min(stuck)]
    while path.count(path[-1]) == 1:
        path.append(next(each for each in edges[path[-1]] if each in stuck))
    return path[path.index(path[-1]) :]


def _only_on_cycles(stuck: set[str], edges: Mapping[str, Sequence[str]]) -> set[str]:
    """Leave out, again and again, the steps that need none of the others; what is left can be followed for ever."""
    waits_for = {step: sum(each in stuck for each in edges[step]) for step in stuck}
    needed_by = turned({step: edges[step] for step in stuck})
    free = [step for step, number in waits_for.items() if not number]
    left = set(stuck)
    while free:
        step = free.pop()
        left.discard(step)
        for other in needed_by.get(step, ()):
            waits_for[other] -= 1
            if not waits_for[other]:
                free.append(other)
    return left


def _layers(
    steps: Sequence[PlanStep], done: set[str], *, known: Mapping[str, Sequence[str]] | None = None
) -> list[list[PlanStep]]:
    """Return steps in the layers of a topological order (Kahn 1962), in time linear in steps and needs."""
    edges = known or {each.id: needs(each) for each in steps}
    missing = {each.id: sum(need not in done for need in edges[each.id]) for each in steps}
    needed_by = turned({each.id: edges[each.id] for each in steps})
    place = {each.id: number for number, each in enumerate(steps)}
    layer = [each for each in steps if not missing[each.id]]
    layers = []
    while layer:
        layers.append(layer)
        freed = []
        for step in layer:
            for other in needed_by.get(step.id, ()):
                missing[other] -= 1
                if not missing[other]:
                    freed.append(steps[place[other]])
        layer = sorted(freed, key=lambda each: place[each.id])
    return layers


def turned(edges: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Return who needs whom the other way round: the steps that need a step."""
    turned: dict[str, list[str]] = {}
    for step, needed in edges.items():
        for each in needed:
            turned.setdefault(each, []).append(step)
    return turned

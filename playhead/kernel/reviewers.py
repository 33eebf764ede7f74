"""Makes the reviews of an agent from what its constructor was given."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from playhead.errors import UsageError, first_problem
from playhead.kernel import checks
from playhead.kernel.arguments import name_of
from playhead.kernel.repair.lenient_json import json_blocks
from playhead.kernel.review import Judged, judge_by
from playhead.trace.types import ReviewInfo
from playhead.trace.values import from_json, repair_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playhead.kernel.review import Judge, Validator
    from playhead.trace.values import JsonValue

Verify = Literal["reflect", "loop"]
DONE_RETRIES: Final = 3
"""How often a run goes on because its caller says that it is not done."""
VERIFY_RETRIES: Final = 1
OUTPUT_TYPE: Final = "output_type"


class Reviews:
    """What looks at an agent's answers, in this order: the turns, the form, the validators, `done_when`, the model."""

    def __init__(  # noqa: PLR0913 - the agent's own arguments
        self,
        *,
        output_type: Any = None,  # noqa: ANN401 - any type
        validators: Sequence[Validator] = (),
        output_retries: int = 2,
        done_when: Callable[[Any], bool] | None = None,
        verify: Verify | None = None,
        min_iterations: int = 0,
    ) -> None:
        retries = checks.at_least("output_retries", output_retries, 0)
        self.infos: tuple[ReviewInfo, ...] = ()
        self.judges: dict[str, Judge] = {}
        self.output_type: TypeAdapter[Any] | None = None
        if least := checks.at_least("min_iterations", min_iterations, 0):
            self._add(ReviewInfo(kind="min-iterations", name="min_iterations", max_retries=least, least=least))
        if output_type is not None:
            self.output_type, schema = _adapter(output_type)
            info = ReviewInfo(kind="output-type", name=OUTPUT_TYPE, max_retries=retries, form=schema)
            self._add(info, OfType(self.output_type, tuple(_classes_in(output_type))))
        for function in checks.functions("validate", validators):
            name = self._free(name_of(function))
            info = ReviewInfo(kind="validator", name=name, max_retries=retries)
            self._add(info, partial(judge_by, function, self.restored, feedback=f"{name} does not accept it."))
        if done_when is not None:
            (function,) = checks.functions("done_when", [done_when])
            info = ReviewInfo(kind="validator", name="done_when", max_retries=DONE_RETRIES)
            self._add(info, partial(judge_by, function, self.restored, feedback="The task is not done yet."))
        if verify not in (None, "reflect", "loop"):
            raise UsageError(f"verify must be 'reflect', 'loop' or None; it is {verify!r}")
        if verify is not None:
            self._add(ReviewInfo(kind="verification", name="verify", max_retries=VERIFY_RETRIES, mode=verify))

    def _add(self, info: ReviewInfo, judge: Judge | None = None) -> None:
        self.infos = (*self.infos, info)
        if judge is not None:
            self.judges[info.name] = judge

    def _free(self, name: str) -> str:
        taken = {info.name for info in self.infos}
        numbered = (name if number == 1 else f"{name} ({number})" for number in range(1, len(taken) + 2))
        return next(each for each in numbered if each not in taken)

    def restored(self, output: JsonValue) -> Any:  # noqa: ANN401 - of the output type
        """Return an accepted output as an object of the output type."""
        return output if self.output_type is None else self.output_type.validate_python(from_json(output))


def _adapter(output_type: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:  # noqa: ANN401 - any type
    try:
        adapter = TypeAdapter(output_type)
        return adapter, adapter.json_schema()
    except (PydanticSchemaGenerationError, PydanticUserError, TypeError) as error:
        raise UsageError(f"output_type {output_type!r} has no JSON form: {error}") from None


def _classes_in(annotation: Any) -> Iterator[type]:  # noqa: ANN401 - any type
    if isinstance(annotation, type) and not get_args(annotation):
        yield annotation
    for each in get_args(annotation):
        yield from _classes_in(each)


@dataclass(frozen=True, slots=True)
class OfType:
    """Looks whether an answer is of the output type."""

    adapter: TypeAdapter[Any]
    classes: tuple[type, ...]
    """The classes that the type is made of."""

    async def __call__(self, output: JsonValue) -> Judged:
        """Read an answer as the output type: as JSON, else as the one value in its text that fits, else as it is.

        Of several values that fit nobody knows which is the answer.
        """
        return _of_type(self.adapter, output)


def _of_type(adapter: TypeAdapter[Any], output: JsonValue) -> Judged:
    problems = []
    for values in _readings(output):
        fitting: list[JsonValue] = []
        for value in values:
            try:
                read = repair_json(adapter.dump_python(adapter.validate_python(value), mode="json"))
            except ValidationError as error:
                problems.append(first_problem(error))
                continue
            fitting += [] if read in fitting else [read]
        if len(fitting) == 1:
            return Judged(valid=True, output=fitting[0])
        if fitting:
            problems = [f"it holds {len(fitting)} values of the asked form", ""]
            break
    problem = problems[0] if len(problems) > 1 else "it holds no JSON"  # the last is about the text itself
    return Judged(valid=False, feedback=f"{problem}. Reply with JSON of the form that was asked for, and nothing else.")


def _readings(output: JsonValue) -> list[list[Any]]:
    """Return what an answer may be read as, the likeliest first; each time all that it could be."""
    if not isinstance(output, str):
        return [[from_json(output)], [output]]
    try:
        return [[json.loads(output)], [output]]
    except (ValueError, RecursionError):
        return [[block.value for block in json_blocks(output) if block.problem is None and block.closed], [output]]

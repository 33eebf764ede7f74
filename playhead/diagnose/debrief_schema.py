"""The JSON Schema of a debrief: `python -m playhead.diagnose.debrief_schema` prints it.

What the fields mean is said once, in the strings beneath them in `debrief_model`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

from playhead.diagnose.debrief_model import Debrief
from playhead.trace.schema import attribute_docs

if TYPE_CHECKING:
    from pydantic import BaseModel

Schema = dict[str, Any]


def debrief_schema() -> Schema:
    """Return the JSON Schema of a debrief as JSON."""
    schema = Debrief.model_json_schema(mode="serialization", schema_generator=_Generator)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A Playhead debrief", **schema}


class _Generator(GenerateJsonSchema):
    """pydantic's generator without titles, and with our descriptions."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ANN401, ARG002 - as pydantic calls it
        return False

    def model_schema(self, schema: Any) -> Schema:  # noqa: ANN401
        model: type[BaseModel] = schema["cls"]
        result = super().model_schema(schema)
        result.pop("title", None)
        for name, field in result.get("properties", {}).items():
            field["description"] = attribute_docs(model)[name]
        return result


if __name__ == "__main__":
    print(json.dumps(debrief_schema(), indent=2, ensure_ascii=False))  # noqa: T201 - that is what it is for

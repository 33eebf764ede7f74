"""Calls that are nearly right, and traps that are nearly calls: written in one go, with tools of their own, before anything was run."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from playhead.kernel.calls_in_text.reading import read_calls
from playhead.kernel.healing.pipeline import heal
from playhead.trace.types import ToolSpec

TEXT: Final = {"type": "string"}
WHOLE: Final = {"type": "integer"}


def _spec(
    name: str, description: str, known: dict[str, Any], needed: list[str], *, read_only: bool = False
) -> ToolSpec:
    schema = {"type": "object", "properties": known, "required": needed, "additionalProperties": False}
    return ToolSpec(name=name, description=description, parameters=schema, read_only=read_only)


SPECS: Final = {
    spec.name: spec
    for spec in (
        _spec(
            "open_merge_request",
            "Open a merge request.",
            {"repo": TEXT, "title": TEXT, "head": TEXT, "base": TEXT, "squash": {"type": "boolean"}},
            ["repo", "title", "head"],
        ),
        _spec("compare_refs", "Compare two refs of a repository.", {"base": TEXT, "head": TEXT}, ["base", "head"], read_only=True),
        _spec(
            "resize_cluster",
            "Resize a compute cluster.",
            {"cluster": TEXT, "nodes": {**WHOLE, "minimum": 1}, "zone": {**TEXT, "enum": ["eu-1", "us-1"]}, "drain": {"type": "boolean"}},
            ["cluster", "nodes"],
        ),
        _spec("rename_label", "Rename a label of the board.", {"board_id": TEXT, "label": TEXT, "new_name": TEXT}, ["board_id", "label", "new_name"]),
        _spec("purge_cache", "Purge the cache of a site.", {"site": TEXT, "paths": {"type": "array", "items": TEXT}}, ["site"]),
        _spec(
            "render_image",
            "Render an image file.",
            {"input_file": TEXT, "output_file": TEXT, "quality": {**WHOLE, "minimum": 1, "maximum": 100}},
            ["input_file", "output_file"],
        ),
        _spec(
            "find_flats",
            "Find flats to rent.",
            {
                "city": TEXT,
                "rent_range": {"type": "object", "properties": {"min": {"type": "number"}, "max": {"type": "number"}}, "additionalProperties": False},
                "rooms": WHOLE,
                "pets": {"type": "boolean"},
                "move_in": {**TEXT, "format": "date"},
            },
            ["city"],
            read_only=True,
        ),
        _spec("split_text", "Split a text.", {"text": TEXT, "chunk_size": {**WHOLE, "description": "In tokens."}, "overlap": {**WHOLE, "description": "In tokens."}}, ["text"], read_only=True),
        _spec("send_invoice", "Send an invoice to a customer.", {"invoice_id": TEXT, "email": {**TEXT, "format": "email"}, "copy_to": {"type": "array", "items": TEXT}}, ["invoice_id", "email"]),
    )
}  # fmt: skip
MR: Final = {"repo": "a/b", "title": "Fix", "head": "fix", "base": "main"}
XML: Final = "<tool_call>\n<function={}>\n{}</function>\n</tool_call>"
NATIVE: Final[list[tuple[str, Any, str, dict[str, Any]]]] = [
    ("open_merge_request", {"repo": "a/b", "title": "Fix", "source_branch": "fix", "target_branch": "main"}, "open_merge_request", MR),
    ("open_merge_request", {"repo": "a/b", "title": "Fix", "from_branch": "fix", "to_branch": "main"}, "open_merge_request", MR),
    ("open_merge_requst", MR, "open_merge_request", MR),
    ("open_mr", MR, "open_merge_request", MR),
    ("open_a_merge_request", MR, "open_merge_request", MR),
    ("resize_compute_cluster", {"cluster": "c", "nodes": 3}, "resize_cluster", {"cluster": "c", "nodes": 3}),
    ("resize_clusster", {"cluster": "c", "nodes": 3}, "resize_cluster", {"cluster": "c", "nodes": 3}),
    ("resize_the_cluster", {"cluster": "c", "nodes": 3}, "resize_cluster", {"cluster": "c", "nodes": 3}),
    ("resize_cluster", {"cluster_name": "c", "node_count": 3}, "resize_cluster", {"cluster": "c", "nodes": 3}),
    ("resize_cluster", {"cluster": "c", "num_nodes": "3", "zone": "EU-1"}, "resize_cluster", {"cluster": "c", "nodes": 3, "zone": "eu-1"}),
    ("resize_cluster", {"cluster": "c", "nodes": 3, "drain": "not specified"}, "resize_cluster", {"cluster": "c", "nodes": 3}),
    ("resize_cluster", {"cluster": "c", "nodes": 3, "_trace_id": "ab12"}, "resize_cluster", {"cluster": "c", "nodes": 3}),
    ("resize_cluster", {"cluster": "c", "nodes": 3, "_thought": "More load."}, "resize_cluster", {"cluster": "c", "nodes": 3}),
    ("resize_cluster", {"tool_calls": [{"name": "resize_cluster", "arguments": {"cluster": "c", "nodes": 3}}]}, "resize_cluster", {"cluster": "c", "nodes": 3}),
    ("multi_tool_use.parallel", {"tool_uses": [{"recipient_name": "functions.purge_cache", "parameters": {"site": "s"}}]}, "purge_cache", {"site": "s"}),
    ("call_tool", {"name": "purge_cache", "arguments": {"site": "s"}}, "purge_cache", {"site": "s"}),
    ('{"name": "purge_cache", "arguments": {"site": "s"}}', {}, "purge_cache", {"site": "s"}),
    ('purge_cache(site="s")', {}, "purge_cache", {"site": "s"}),
    ("google:functions:purge_cache", {"site": "s"}, "purge_cache", {"site": "s"}),
    ("purge_cache<|channel|>commentary", {"site": "s"}, "purge_cache", {"site": "s"}),
    ("purge_cache", {"site": "s", "paths": "<path>/a</path><path>/b</path>"}, "purge_cache", {"site": "s", "paths": ["/a", "/b"]}),
    ("purge_cache", "{'site': 's', 'paths': ('/a', '/b')}", "purge_cache", {"site": "s", "paths": ["/a", "/b"]}),
    ("purge_cache", '{"site": "s"}\nObservation:', "purge_cache", {"site": "s"}),
    ("render_image", {"source_file": "a.svg", "target_file": "b.png"}, "render_image", {"input_file": "a.svg", "output_file": "b.png"}),
    ("render_image", {"input": "a.svg", "output": "b.png", "quality": "90"}, "render_image", {"input_file": "a.svg", "output_file": "b.png", "quality": 90}),
    ("find_flats", {"city": "Bonn", "min_rent": 500, "max_rent": "900"}, "find_flats", {"city": "Bonn", "rent_range": {"min": 500, "max": 900}}),
    ("find_flats", {"city": "Bonn", "move_in": "n/a", "pets": "(none)"}, "find_flats", {"city": "Bonn"}),
    ("find_flats", '{"city": "Bonn", "rooms": 3}\n\nI will look for flats now.', "find_flats", {"city": "Bonn", "rooms": 3}),
    ("find_flats", {"properties": {"city": {"type": "string", "value": "Bonn"}, "rooms": {"type": "integer", "value": 2}}}, "find_flats", {"city": "Bonn", "rooms": 2}),
    ("split_text", {"text": "abc", "chunk_tokens": 200}, "split_text", {"text": "abc", "chunk_size": 200}),
    ("send_an_invoice", {"invoice_id": "I-1", "email": "a@b.org"}, "send_invoice", {"invoice_id": "I-1", "email": "a@b.org"}),
    ("send_invoicce", {"invoice_id": "I-1", "email": "a@b.org"}, "send_invoice", {"invoice_id": "I-1", "email": "a@b.org"}),
]  # fmt: skip
IN_TEXT: Final[list[tuple[str, str, dict[str, Any]]]] = [
    (XML.format("purge_cache", "<parameter=site=s</parameter>\n"), "purge_cache", {"site": "s"}),
    (XML.format("purge_cache", "<parameter=site>s</parameter>\n<parameter=paths><item>/a</item></parameter>\n"), "purge_cache", {"site": "s", "paths": ["/a"]}),
    ("<tool_call>purge_cache<arg_key>site</arg_key><arg_value>s</arg_value>", "purge_cache", {"site": "s"}),
    ('{"name": "purge_cache", "arguments": {"site": "s"}, "paths": ["/a"]}', "purge_cache", {"site": "s", "paths": ["/a"]}),
    ('<invoke name="purge_cache"><parameter name="site" value="s"/></invoke>', "purge_cache", {"site": "s"}),
    ('{"thought": "Stale.", "function": {"name": "purge_cache", "arguments": {"site": "s"}}, "id": "call_1"}', "purge_cache", {"site": "s"}),
]  # fmt: skip
TRAPS: Final[list[tuple[str, Any]]] = [
    ("compare_refs", {"source": "fix", "target": "main"}),  # which is the base cannot be said
    ("open_draft_merge_request", MR),
    ("close_merge_request", MR),
    ("open_merge_request_review", MR),
    ("open_merge_request", {**MR, "_dry_run": True}),
    ("open_merge_request", {**MR, "_force": True}),
    ("open_merge_request", {"repo": "a/b", "title": "Fix", "head": "fix", "source_branch": "other"}),
    ("resize_clusters", {"cluster": "c"}),
    ("drain_cluster", {"cluster": "c", "nodes": 3}),
    ("resize_old_cluster", {"cluster": "c", "nodes": 3}),
    ("resize_cluster_2", {"cluster": "c", "nodes": 3}),
    ("resize_test_cluster", {"cluster": "c", "nodes": 3}),
    ("resize_cluster", {"cluster": "c", "node_delta": 3}),
    ("resize_cluster", {"cluster": "c", "nodes": 3, "_delay": "ten minutes"}),
    ("resize_cluster", {"tool_calls": [{"name": "purge_cache", "arguments": {"site": "s"}}]}),
    ("call_tool", {"tool_calls": [{"name": "purge_cache", "arguments": {"site": "s"}}, {"name": "purge_cache", "arguments": {"site": "t"}}]}),
    ("prod:mcp:purge_cache", {"site": "s"}),
    ("rename_table", {"board_id": "b", "label": "x", "new_name": "y"}),
    ("purge_cache", '{"site": "s"}\nOnly the images.'),
    ("purge_cache", '{"site": "s"}\nWait, I should not do this.'),
    ("render_image", {"target_file": "b.png"}),
    ("send_invoice_reminder", {"invoice_id": "I-1", "email": "a@b.org"}),
    ("send_test_invoice", {"invoice_id": "I-1", "email": "a@b.org"}),
]  # fmt: skip
TRAPS_IN_TEXT: Final = [
    XML.format("purge_cache", "<parameter=site>s</parameter>\npaths: /a\n"),
    XML.format("purge_cache", "<parameter=site>s</parameter>\n<parameter=paths=</parameter>\n"),
    '{"name": "purge_cache", "arguments": {"site": "s"}, "dry_run": true}',
    '{"tool_calls": [{"name": "purge_cache", "arguments": {"site": "s"}}], "dry_run": true}',
    '<tool name="purge_cache" paths="/a"><parameter name="site">s</parameter></tool>',
    '<tool_call><name>purge_cache</name><arguments>{"site": "s"}</arguments><only>/a</only></tool_call>',
    "<tool_call>purge_cache<arg_key>site</arg_key><arg_value>s</arg_value><arg_key>paths</arg_key><arg_value>/a",
]  # fmt: skip


def _made(text: str) -> list[tuple[str, Any]]:
    healed = [heal(call.name or "", call.arguments, SPECS) for call in read_calls(text, SPECS)[0]]
    return [(each.name, each.arguments) for each in healed if each.arguments is not None]


@pytest.mark.parametrize(
    ("name", "written", "tool", "arguments"), NATIVE, ids=[str(place) for place in range(len(NATIVE))]
)
def test_a_call_that_is_nearly_right_is_read(name: str, written: Any, tool: str, arguments: dict[str, Any]):
    """A native call with one reading is read so."""
    healed = heal(name, written, SPECS)
    assert (healed.name, healed.arguments) == (tool, arguments)


@pytest.mark.parametrize(("text", "tool", "arguments"), IN_TEXT, ids=[str(place) for place in range(len(IN_TEXT))])
def test_a_call_in_text_is_read(text: str, tool: str, arguments: dict[str, Any]):
    """A call in text with one reading is read so."""
    assert _made(text) == [(tool, arguments)]


@pytest.mark.parametrize(("name", "written"), TRAPS, ids=[str(place) for place in range(len(TRAPS))])
def test_a_call_that_may_mean_something_else_is_refused(name: str, written: Any):
    """Nothing runs of a call that has no reading, or more than one."""
    healed = heal(name, written, SPECS)
    assert healed.arguments is None, json.dumps(healed.arguments)


@pytest.mark.parametrize("text", TRAPS_IN_TEXT, ids=[str(place) for place in range(len(TRAPS_IN_TEXT))])
def test_nothing_in_a_call_is_left_out(text: str):
    """A call in text is refused where something in it is neither read nor noise."""
    assert _made(text) == []


@pytest.mark.parametrize(
    ("own", "written", "meant"),
    [
        ({"wait": {**WHOLE, "description": "Milliseconds."}}, {"wait_seconds": 5}, None),
        ({"size": {"anyOf": [WHOLE, {"type": "null"}], "description": "In MB."}}, {"size_gb": 5}, None),
        ({"pages": WHOLE}, {"page_number": 3}, None),
        ({"pages": WHOLE}, {"page_count": 3}, {"pages": 3}),
        ({"level": {**TEXT, "enum": ["low", "none"]}}, {"level": "(none)"}, {"level": "none"}),
        ({"level": {**TEXT, "enum": ["low", "default"]}}, {"level": "Default"}, {"level": "default"}),
        ({"tags": {"type": "array", "items": TEXT}}, {"tags": "default"}, {"tags": ["default"]}),
        ({"deep": {"type": "boolean"}}, {"deep": "default"}, {}),
    ],
    ids=str,
)
def test_values_and_names_that_say_something_else(
    own: dict[str, Any], written: dict[str, Any], meant: dict[str, Any] | None
):
    """Another unit is no name of a parameter, the place of a thing is no count, and a word for nothing may be a choice."""
    spec = _spec("scan_site", "Scan a site.", {"site": TEXT, **own}, ["site"])
    healed = heal("scan_site", {"site": "s", **written}, {"scan_site": spec}).arguments
    assert healed == (None if meant is None else {"site": "s", **meant})

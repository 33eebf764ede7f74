"""How Sphinx builds the documentation: `make docs`."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from sphinx.pycode import ModuleAnalyzer

if TYPE_CHECKING:
    from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))
from docs.schemas import attribute_docs  # noqa: E402
from playhead import __version__  # noqa: E402 - of this checkout
from playhead.trace.events import EVENT_TYPES  # noqa: E402

project = "Playhead"
author = "The Playhead developers"
copyright = "the Playhead developers"  # noqa: A001 - as Sphinx calls it
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autoclass_content = "both"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
maximum_signature_line_length = 80
autodoc_member_order = "bysource"
copybutton_exclude = ".linenos, .gp, .go"
copybutton_prompt_text = "$ "
suppress_warnings = [
    "myst.xref_missing",  # links to files of the repository; a test follows them
    "ref.python",  # one name for a field of several classes
    "toc.multiple_toc_parents",  # a public name that two modules offer
]

html_theme = "furo"
html_title = f"Playhead {__version__}"
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#b3401a", "color-brand-content": "#b3401a"},
    "dark_css_variables": {"color-brand-primary": "#ff9a6b", "color-brand-content": "#ff9a6b"},
}

API = {
    "playhead": "Agents, tools, recordings",
    "playhead.compose": "Hooks",
    "playhead.compose.killswitches": "Killswitches",
    "playhead.compose.policies": "Policies",
    "playhead.compose.redaction": "Redaction in hooks",
    "playhead.kernel": "Parts of a strategy",
    "playhead.kernel.strategies": "Strategies",
    "playhead.replay": "Running a recording again",
    "playhead.importing": "Importing spans",
    "playhead.spans": "Exporting spans",
    "playhead.mcp": "MCP servers",
    "playhead.testing": "Testing",
    "playhead.errors": "Errors",
}
"""The public modules, each with what its page is called."""


def home_of(module: str, name: str) -> str:
    """Return the path of a name: for a value that says nothing about itself, in the module that describes it."""
    value = getattr(import_module(module), name)
    if inspect.isclass(value) or inspect.isroutine(value):
        return f"{module}.{name}"
    holders = [each for each, found in list(sys.modules.items()) if vars(found).get(name) is value]
    ours = [each for each in holders if each.startswith("playhead")]
    described = [each for each in ours if ("", name) in ModuleAnalyzer.for_module(each).find_attr_docs()]
    return f"{(described or [module])[0]}.{name}"


def public_names(module: str) -> list[str]:
    """Return what a module offers: `__all__`, or the public classes and functions that it defines."""
    found = import_module(module)
    defined = [name for name, value in vars(found).items() if inspect.isclass(value) and value.__module__ == module]
    return sorted(getattr(found, "__all__", defined))


def directive_of(value: object) -> str:
    """Return how autodoc documents a value."""
    if inspect.isclass(value):
        return "autoexception" if issubclass(value, BaseException) else "autoclass"
    return "autofunction" if inspect.isroutine(value) else "autodata"


def api_pages() -> dict[str, str]:
    """Return the pages of the Python API, by their path: one for each public module, and one for each of its names.

    A name that two modules offer has its page at the first of them.
    """
    pages: dict[str, str] = {}
    at: dict[int, str] = {}
    for module, title in API.items():
        listed = []
        for name in public_names(module):
            value = getattr(import_module(module), name)
            page = at.setdefault(id(value), f"{module}/{name}")
            listed.append(page)
            directive = directive_of(value)
            members = "   :members:\n" if directive in {"autoclass", "autoexception"} else ""
            described = f".. {directive}:: {home_of(*page.split('/'))}\n{members}"
            pages[f"{page}.md"] = f"# {name}\n\n```{{eval-rst}}\n{described}```\n"
        names = "\n".join(listed)
        pages[f"{module}.md"] = f"# {title}\n\n`{module}`\n\n```{{toctree}}\n:maxdepth: 1\n\n{names}\n```\n"
    return pages


def events_page() -> str:
    """Return the page of all kinds of events, with what the source says beneath each field."""
    parts = [
        "# Events",
        "Each line of a trace is one of these. Besides its own fields, a line holds [the envelope](../../trace-format.md#the-line).",
    ]
    for kind, event in EVENT_TYPES.items():
        described = attribute_docs(event)
        rows = [f"| `{name}` | {described[name]} |" for name in event.model_fields if name in described]
        table = ["| field | |\n|---|---|", *rows] if rows else []
        parts += [f"## {kind}", " ".join((event.__doc__ or "").split()), "\n".join(table)]
    return "\n\n".join(part for part in parts if part) + "\n"


def write_api_pages(_app: Sphinx) -> None:
    """Write what has changed of the pages of the Python API, and remove what is gone."""
    folder = DOCS / "reference" / "api"
    pages = {folder / path: text for path, text in {**api_pages(), "events.md": events_page()}.items()}
    for path in set(folder.rglob("*.md")) - pages.keys():
        path.unlink()
    for path, text in pages.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def as_rst(_app: Sphinx, _what: str, _name: str, _value: object, _options: object, lines: list[str]) -> None:
    """Turn the code spans of a docstring, which are those of Markdown, into those of reStructuredText."""
    text = re.sub(r"(?<!`)`([^`]+)`(?!`)(?=(\w)?)", _literal, "\n".join(lines))
    lines[:] = text.split("\n")


def _literal(match: re.Match[str]) -> str:
    return f"``{match[1]}``" + ("\\ " if match[2] else "")


def setup(app: Sphinx) -> None:
    """Write the pages of the API before Sphinx looks for pages; our docstrings are Markdown."""
    app.connect("builder-inited", write_api_pages)
    app.connect("autodoc-process-docstring", as_rst, priority=400)  # before napoleon, which takes `name: ` for a type

"""Operators that damage the nesting of arguments, and paths."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from tests.kernel.healing.corpus.set9.set9m_core import Draft, Schema, falling, members, objects, operator
from tests.kernel.healing.corpus.set9.set9m_names import camel, snake
from tests.kernel.healing.corpus.set9.set9m_values import swap_value
from tests.kernel.healing.corpus.set9.set9m_words import nested_words

if TYPE_CHECKING:
    from random import Random


@operator("nested-damage", 2, layer=1)
def wrapped(d: Draft, rng: Random) -> bool:
    """Put all arguments under one more key."""
    if not d.args:
        return False
    words = ["arguments", "parameters", "input", "params", "args", "kwargs", d.tool, "request"]
    key = rng.choices(words, [4, 3, 3, 2, 1, 1, 1, 1])[0]
    if key in d.parameters:
        return False
    d.args = {key: d.args}
    d.why.append(f"all arguments under {key}")
    return True


@operator("nested-damage", 2)
def object_flattened(d: Draft, rng: Random) -> bool:
    """Write the keys of objects on top, with the parameter's name before them."""
    keys = d.known(lambda _s, v: isinstance(v, dict) and not any(isinstance(i, dict) for i in v.values()))
    if not keys:
        return False
    form = rng.choices(["{0}.{1}", "{0}_{1}", "{0}[{1}]"], [3, 2, 1])[0]
    for key in keys:
        inner = d.args.pop(key)
        d.args.update({form.format(key, k): v for k, v in inner.items()})
    d.why.append(f"{', '.join(keys)} flattened")
    return True


@operator("nested-damage", 2.5)
def item_hoisted(d: Draft, _rng: Random) -> bool:
    """Write the keys of the only object of a list on top."""
    for key in d.known(lambda s, v: isinstance(v, list) and len(v) == 1 and objects(s) is not None):
        item = d.args[key][0]
        if not set(item) & (set(d.parameters) | {"name", "value", "email"}):
            d.args = {**{k: v for k, v in d.args.items() if k != key}, **item}
            d.why.append(f"the only object of {key} on top")
            return True
    return False


@operator("nested-damage", 3)
def object_as_value(d: Draft, rng: Random) -> bool:
    """Give the only value in place of an object, in a list or alone."""
    keys = [k for k in d.known() if objects(d.parameters[k]) and all(len(m) == 1 for m in members(d.args[k]))]
    if not keys:
        return False
    for key in keys if rng.random() < 0.7 else [rng.choice(keys)]:
        value = d.args[key]
        plain = [next(iter(m.values())) for m in members(value)]
        swap_value(d, key, plain if isinstance(value, list) else plain[0], "value in place of the object")
    return True


@operator("nested-damage", 3)
def object_for_list(d: Draft, rng: Random) -> bool:
    """Give the only object in place of a list."""
    keys = d.known(lambda _s, v: isinstance(v, list) and len(v) == 1 and isinstance(v[0], dict))
    return bool(keys) and [
        swap_value(d, k, d.args[k][0], "object in place of the list") for k in [rng.choice(keys)]
    ] == [True]


def inner_renamed(d: Draft, key: str, names: dict[str, str]) -> bool:
    """Give keys inside a parameter other names."""
    value = d.args[key]
    new = [{names.get(k, k): v for k, v in m.items()} for m in members(value)]
    if any(len(a) != len(b) for a, b in zip(new, members(value), strict=True)) or new == members(value):
        return False
    changed = ", ".join(f"{a} written {b}" for a, b in names.items() if a != b)
    return swap_value(d, key, new if isinstance(value, list) else new[0], changed)


@operator("nested-damage", 4)
def nested_renamed(d: Draft, rng: Random) -> bool:
    """Call keys of nested objects by other likely words; oldText and newText go together."""
    keys = [k for k in d.known() if objects(d.parameters[k])]
    if not keys:
        return False
    key = rng.choice(keys)
    inside = sorted({k for m in members(d.args[key]) for k in m if nested_words(key, k)})
    if not inside:
        return False
    if key == "edits":
        at = rng.choices(range(5), [4, 2, 1.5, 1, 1])[0]
        return inner_renamed(d, key, {k: nested_words(key, k)[at] for k in inside})
    sub = rng.choice(inside)
    return inner_renamed(d, key, {sub: falling(rng, nested_words(key, sub))})


@operator("nested-damage", 2)
def nested_restyled(d: Draft, rng: Random) -> bool:
    """Write nested keys in snake case."""
    keys = [k for k in d.known() if objects(d.parameters[k])]
    if not keys:
        return False
    style = rng.choices([snake, str.lower, camel], [4, 1, 1])[0]
    inside = sorted({k for m in members(d.args[keys[0]]) for k in m})
    return all(inner_renamed(d, key, {k: style(k) for k in inside}) for key in keys)


@operator("nested-damage", 1.5)
def list_in_object(d: Draft, rng: Random) -> bool:
    """Put a list into an object, as from XML."""
    keys = d.known(lambda _s, v: isinstance(v, list))
    if not keys:
        return False
    key = rng.choice(keys)
    value = d.args[key]
    word = rng.choice(["items", "item", key.removesuffix("s"), "list"])
    boxes: list[Any] = [{word: value}, {str(i): v for i, v in enumerate(value)}]
    return swap_value(d, key, rng.choices(boxes, [3, 1])[0], "list inside an object")


@operator("nested-damage", 1)
def list_twice(d: Draft, rng: Random) -> bool:
    """Put a list into a list."""
    keys = d.known(lambda _s, v: isinstance(v, list))
    return bool(keys) and [swap_value(d, k, [d.args[k]], "list in a list") for k in [rng.choice(keys)]] == [True]


@operator("nested-damage", 2)
def map_and_pairs(d: Draft, rng: Random) -> bool:
    """Give pairs as a map, texts NAME=value, or a map as pairs."""
    if "env" in d.args and "env" in d.known(lambda _s, v: isinstance(v, list)):
        pairs = [(m["name"], m["value"]) for m in d.args["env"]]
        return swap_value(
            d, "env", rng.choice([dict(pairs), dict(pairs), [f"{a}={b}" for a, b in pairs]]), "map or texts for pairs"
        )
    if isinstance(d.args.get("metadata"), dict):
        pairs = list(d.args["metadata"].items())
        return swap_value(d, "metadata", [{"key": a, "value": b} for a, b in pairs], "pairs for a map")
    return False


@operator("nested-damage", 1)
def value_boxed(d: Draft, rng: Random) -> bool:
    """Put a plain value into an object."""
    keys = d.known(lambda _s, v: isinstance(v, str | int))
    if not keys:
        return False
    key = rng.choice(keys)
    return swap_value(d, key, {rng.choice(["value", "value", key]): d.args[key]}, "value inside an object")


@operator("nested-damage", 1)
def nested_boolean_text(d: Draft, rng: Random) -> bool:
    """Write nested booleans as texts."""
    for key in d.known():
        for member in members(d.args[key]) if objects(d.parameters[key]) else []:
            for sub in [k for k, v in member.items() if isinstance(v, bool)]:
                member[sub] = str(member[sub]) if rng.random() < 0.4 else str(member[sub]).lower()
                d.why.append(f"{key}: boolean as text")
                return True
    return False


POOL = [
    "package.json",
    "Makefile",
    "pyproject.toml",
    "CHANGELOG.md",
    "src/index.ts",
    "src/utils/format.ts",
    "tests/test_orders.py",
    "docs/api/endpoints.md",
    "scripts/deploy.sh",
    "assets/logo.svg",
    "public/index.html",
    "tools/lint.cfg",
    "LICENSE",
    "infra/main.tf",
    "data/seed/users.csv",
    "locale/de.po",
    "examples/quickstart.ipynb",
    ".github/workflows/ci.yml",
]
FOLDERS: dict[str, str] = {
    "packages/ui/src": "Button.tsx theme.ts hooks/useModal.ts",
    "data/exports": "customers.csv orders.parquet",
    "src": "cart/total.ts cart/total.test.ts main.ts",
    "services/billing": "invoice_pdf.py handlers/invoice.py config.toml",
    "config/environments": "staging.yaml production.yaml local.example.yaml",
    "backend": "manage.py orders/models.py requirements.txt",
    "projects/webshop": "composer.json app/Cart.php",
    "vendor/libparse": "parse.c parse.h README.rst",
    "services/api": "tests/unit/test_routes.py app.py",
    "frontend": "vite.config.ts components/Nav.vue",
}
NEAR: dict[str, str] = {
    "src/auth/session.py": "src/auth/tokens.py src/auth/__init__.py",
    "logs/worker-2025-05-28.log": "logs/api-2025-05-28.log logs/worker-2025-05-12.log",
    "docs/guides/getting-started.md": "docs/guides/deployment.md docs/index.md",
    "src/server/app.ts": "src/server/routes.ts src/server/db.ts",
    "app/models/user.rb": "app/models/post.rb app/controllers/users_controller.rb",
    "contracts/draft-v3.pdf": "contracts/terms-2024.pdf",
    "reports/q2/summary.xlsx": "reports/q2/details.xlsx reports/readme.txt",
}
WRONG = {
    "src": "lib",
    "docs": "doc",
    "logs": "log",
    "app": "src",
    "config": "conf",
    "data": "output",
    "services": "src",
    "packages": "libs",
    "contracts": "documents",
    "reports": "files",
    "projects": "repos",
    "vendor": "third_party",
}
ENDINGS = {
    ".py": [".pyc", ".txt"],
    ".log": [".txt", ".logs"],
    ".md": [".txt", ".mdx"],
    ".ts": [".js", ".tsx"],
    ".rb": [".py", ".erb"],
    ".pdf": [".docx", ".PDF"],
    ".xlsx": [".xls", ".csv"],
}


def path_places(d: Draft) -> list[tuple[Any, str, Schema]]:
    """Give the places where a path stands that has to exist."""
    schemas = {k: s for k, s in d.parameters.items() if k in d.known()}
    places = [(d.args, k, s) for k, s in schemas.items() if s.get("format") in {"file-path", "directory-path"}]
    inner = objects(schemas.get("attachments", {})) or {}
    places += [
        (m, "path", inner["properties"]["path"]) for m in members(d.args.get("attachments")) if inner and "path" in m
    ]
    return [p for p in places if isinstance(p[0][p[1]], str)]


def plain_word(name: str) -> str:
    """Give a name without ending, case and separators."""
    return re.sub(r"[\W_]", "", PurePosixPath(name).stem.lower())


def disk(path: str, rng: Random, *, folder: bool) -> list[str]:
    """Give the files that exist: the right one and some that cannot be taken for it."""
    own = [f"{path}/{f}" for f in FOLDERS[path].split()] if folder else [path, *NEAR.get(path, "").split()]
    last = plain_word(PurePosixPath(path).name)
    others = [p for p in POOL if last not in map(plain_word, PurePosixPath(p).parts)]
    return sorted({*own, *rng.sample(others, rng.randint(2, 8))})


def misplaced(path: str, rng: Random) -> str:
    """Write a path with a wrong beginning."""
    first, _, rest = path.partition("/")
    root = rng.choices(
        ["/workspace/", "/home/user/project/", "/app/", "/repo/", "/", "../", "~/"], [4, 4, 2, 2, 6, 1, 1]
    )[0]
    forms = [
        root + path,
        rest or root + path,
        f"{WRONG.get(first, 'src')}/{rest or path}",
        f"{rng.choice(['app', 'project', 'repo'])}/{path}",
        f"./{rest or 'project/' + path}",
        f"{'b' if '.' in path else 'project'}/{path}",
        f"file:///workspace/{path}",
        f"@{path}",
        f"/mnt/data/{PurePosixPath(path).name}",
    ]
    return rng.choices(forms, [11, 4, 4, 3, 1.5, 1, 1, 1, 1])[0]


def misnamed(path: str, rng: Random) -> str:
    """Write a path with a wrong case, ending, separator or letter."""
    p = PurePosixPath(path)
    ending = str(p.with_suffix(rng.choice(ENDINGS.get(p.suffix, [".txt"])))) if p.suffix else path
    case = str(p.with_name((p.stem.title() if p.name.islower() else p.stem.lower()) + p.suffix))
    separators = str(p.with_name(p.name.replace("-", "_") if "-" in p.name else p.name))
    at = rng.randrange(1, max(2, len(p.stem) - 1))
    letter = str(p.with_name(p.name[:at] + p.name[at + 1 :])) if not p.stem[-1].isdigit() else path
    forms = [ending, str(p.with_suffix("")), case, path.replace("/", "\\"), separators, letter]
    return rng.choices(forms, [2, 1, 2, 3, 2, 1])[0]


def path_broken(d: Draft, rng: Random, new: str, place: tuple[Any, str, Schema]) -> bool:
    """Put a broken path into its place and make the disk known."""
    holder, key, schema = place
    path = holder[key]
    plain = new.removeprefix("./")
    if plain == path or d.files is not None:
        return False
    d.files = disk(path, rng, folder=schema["format"] == "directory-path")
    if any(f == plain or f.startswith(plain + "/") for f in d.files):
        return False
    holder[key] = new
    d.why.append(f"path written {new}; one match in files")
    return True


@operator("relative-path", 6)
def path_elsewhere(d: Draft, rng: Random) -> bool:
    """Put a path into the wrong folder or give it a root."""
    places = path_places(d)
    return bool(places) and path_broken(d, rng, misplaced(places[0][0][places[0][1]], rng), places[0])


@operator("relative-path", 2)
def path_basename(d: Draft, rng: Random) -> bool:
    """Give only the last part of a path."""
    places = path_places(d)
    return bool(places) and path_broken(d, rng, PurePosixPath(places[0][0][places[0][1]]).name, places[0])


@operator("relative-path", 4)
def path_misnamed(d: Draft, rng: Random) -> bool:
    """Write a path with wrong letters: case, ending, backslashes, separators."""
    places = path_places(d)
    return bool(places) and path_broken(d, rng, misnamed(places[0][0][places[0][1]], rng), places[0])

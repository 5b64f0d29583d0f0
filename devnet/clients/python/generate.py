"""Writes `types.py` and `_api.py` of the package from the OpenAPI document of a devnet.

The document is a file or a URL, such as http://127.0.0.1:20123/openapi.json. With --check it writes
nothing, and fails if the files differ from what it would write.
"""

import argparse
import json
import keyword
import re
import sys
import textwrap
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).parent / "src" / "cowboy_devnet"
COLUMNS = 100
REQUEST_SECONDS = 10.0
MAX_DOCUMENT = 16 << 20

NAMES = {("get", "/v1/mru"): "mru_records"}
"""Methods that `name_of` would name like another."""

JSON = "application/json"
STREAM = "text/event-stream"

SIMPLE = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "object": "dict[str, Any]",
}

TYPES_HEAD = '''\
"""The requests and answers of the control API. Written by generate.py from its OpenAPI document."""

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict
'''

API_HEAD = '''\
"""The requests of the control API. Written by generate.py from its OpenAPI document."""

from typing import Any
from urllib.parse import quote

from cowboy_devnet import types

Query = dict[str, object]


def part(value: str | int) -> str:
    """A part of a path."""
    return quote(str(value), safe="")


class Api:
    """A method for each request but event streams; `Client` says how they fail."""

    def _json(self, method: str, path: str, query: Query, body: object = None) -> Any:
        raise NotImplementedError

    def _bytes(self, method: str, path: str, query: Query, body: object = None) -> bytes:
        raise NotImplementedError
'''

Schema = dict[str, Any]


class Types:
    """The definitions for a document's schemas."""

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self._schemas = schemas
        self.texts: dict[str, str] = {}
        """By name, each after those that it needs when it is executed."""
        self._variants: dict[str, list[str]] = {}
        """The classes of a union, without the union's name at their beginning."""
        self._enums = {
            tuple(schema["enum"]): name for name, schema in schemas.items() if "enum" in schema
        }
        for name in sorted(schemas):
            self._define(name)

    def _define(self, name: str) -> None:
        if name in self.texts:
            return
        schema = self._schemas[name]
        doc = schema.get("description", "")
        if "allOf" in schema:
            self._define_extended(name, schema["allOf"], doc)
        elif "properties" in schema:
            self._define_class(name, "TypedDict", schema, doc)
        elif any("properties" in one for one in schema.get("oneOf", [])):
            variants = {tag(one).title(): one for one in schema["oneOf"]}
            for variant, one in variants.items():
                self._define_class(name + variant, "TypedDict", one, one["description"])
            self._define_union(name, list(variants), doc)
        elif "enum" in schema:
            values = [json.dumps(value) for value in schema["enum"]]
            text = bracketed("", f"{name}: TypeAlias = Literal[", values, "]")
            self.texts[name] = text + docstring("", doc)
        else:
            self.texts[name] = f"{name}: TypeAlias = {self._written(schema)}\n{docstring('', doc)}"

    def _define_extended(self, name: str, parts: Sequence[Schema], doc: str) -> None:
        """Defines a class with the fields of another one, or a union with those of a union."""
        [reference, own] = parts
        base = target(reference)
        self._define(base)
        if base not in self._variants:
            self._define_class(name, base, own, doc)
            return
        self._define_class(f"{name}Fields", "TypedDict", own, "")
        for variant in self._variants[base]:
            bases = f"{base}{variant}, {name}Fields"
            self._define_class(name + variant, bases, {"properties": {}}, doc)
        self._define_union(name, self._variants[base], doc)

    def _define_union(self, name: str, variants: list[str], doc: str) -> None:
        self._variants[name] = variants
        classes = [name + variant for variant in variants]
        text = f"{name}: TypeAlias = {' | '.join(classes)}\n"
        if len(text) > COLUMNS + 1:
            lines = "\n    | ".join(classes)
            text = f"{name}: TypeAlias = (\n    {lines}\n)\n"
        self.texts[name] = text + docstring("", doc)

    def _define_class(self, name: str, bases: str, schema: Schema, doc: str) -> None:
        fields = []
        for field, content in schema["properties"].items():
            kind = self._written(content)
            is_required = field in schema.get("required", [])
            fields.append((field, kind if is_required else f"NotRequired[{kind}]", content))
        if any(keyword.iskeyword(field) for field, _, _ in fields):
            lines = [f'{name} = TypedDict(\n    "{name}",\n    {{\n']
            lines += [f'        "{field}": {kind},\n' for field, kind, _ in fields]
            lines += ["    },\n)\n", docstring("", doc)]
        else:
            lines = [f"class {name}({bases}):\n", docstring("    ", doc)]
            lines += ["\n"] if doc and fields else []
            for field, kind, content in fields:
                lines += [f"    {field}: {kind}\n", docstring("    ", description(content))]
        self.texts[name] = "".join(lines)

    def _written(self, schema: Schema) -> str:
        """A type in quotes if it names another, which may be defined later."""
        kind = self.of(schema)
        names_another = any(word in self._schemas for word in re.findall(r"\w+", kind))
        return f'"{kind}"' if names_another and '"' not in kind else kind

    def of(self, schema: Schema, prefix: str = "") -> str:
        """The type of a value; names of definitions get the prefix."""
        kind = schema.get("type")
        if "$ref" in schema:
            return prefix + target(schema)
        if "oneOf" in schema:
            return " | ".join(self.of(one, prefix) for one in schema["oneOf"])
        if isinstance(kind, list):
            return " | ".join(self.of(schema | {"type": one}, prefix) for one in kind)
        if "enum" in schema:
            known = self._enums.get(tuple(schema["enum"]))
            values = ", ".join(json.dumps(value) for value in schema["enum"])
            return prefix + known if known else f"Literal[{values}]"
        if kind == "array":
            return f"list[{self.of(schema['items'], prefix)}]"
        if isinstance(schema.get("additionalProperties"), dict):
            return f"dict[str, {self.of(schema['additionalProperties'], prefix)}]"
        return SIMPLE[kind] if kind else "Any"


def method(types: Types, name: str, verb: str, path: str, operation: Schema) -> str:
    """The method of `Api` for an operation; empty if its answer is a stream of events."""
    [answer] = [one for status, one in operation["responses"].items() if status.startswith("2")]
    [(media, content)] = answer["content"].items()
    if media == STREAM:
        return ""
    parameters = ["self"]
    parameters += [f"{name}: str | int" for name in re.findall(r"{(\w+)}", path)]
    if "requestBody" in operation:
        body = operation["requestBody"]["content"][JSON]["schema"]
        parameters.append(f"body: {types.of(body, 'types.')}")
    query = [one for one in operation.get("parameters", []) if one["in"] == "query"]
    parameters += ["*"] if query else []
    for one in query:
        parameters.append(f"{safe(one['name'])}: {types.of(one['schema'], 'types.')} | None = None")
    kind = types.of(content["schema"], "types.") if media == JSON else "bytes"
    path = re.sub(r"{(\w+)}", r"{part(\1)}", path)
    pairs = [f'"{one["name"]}": {safe(one["name"])}' for one in query]
    given = f'"{verb.upper()}", path, {"query" if query else "{}"}'
    given += ", body" if "requestBody" in operation else ""
    lines = [
        bracketed("    ", f"def {name}(", parameters, f") -> {kind}:"),
        docstring("        ", operation["summary"] + "."),
        f'        path = {"f" if "{" in path else ""}"{path}"\n',
        bracketed("        ", "query: Query = {", pairs, "}") if query else "",
        f"        answer: {kind} = self._{'json' if media == JSON else 'bytes'}({given})\n",
        "        return answer\n",
    ]
    return "".join(lines)


def name_of(verb: str, path: str) -> str:
    """`chain_block` for a GET of `/v1/chain/blocks/{height}`; others begin with their verb."""
    words = re.sub(r"s/{", "/{", path.removeprefix("/v1").removesuffix(".json")).split("/")
    words = [word.replace("-", "_") for word in words if word and "{" not in word]
    return "_".join(words if verb == "get" else [verb, *words])


def generate(document: Schema) -> dict[str, str]:
    """The text of each generated file, by its name."""
    types = Types(document["components"]["schemas"])
    methods: dict[str, str] = {}
    for path, operations in sorted(document["paths"].items()):
        for verb, operation in sorted(operations.items()):
            name = NAMES.get((verb, path)) or name_of(verb, path)
            if name in methods:
                sys.exit(f"two methods would be named {name}")
            methods[name] = method(types, name, verb, path, operation)
    api = [API_HEAD, *filter(None, methods.values())]
    return {"types.py": "\n\n".join([TYPES_HEAD, *types.texts.values()]), "_api.py": "\n".join(api)}


def bracketed(indent: str, head: str, items: Sequence[str], tail: str) -> str:
    """Items in brackets, on one line or on one each."""
    line = f"{indent}{head}{', '.join(items)}{tail}\n"
    if len(line) <= COLUMNS + 1:
        return line
    inner = "".join(f"{indent}    {item},\n" for item in items)
    return f"{indent}{head}\n{inner}{indent}{tail}\n"


def docstring(indent: str, text: str) -> str:
    text = " ".join(text.replace("\\", "\\\\").replace('"', "'").split())
    if len(text) <= COLUMNS - len(indent) - 6:
        return f'{indent}"""{text}"""\n' if text else ""
    return textwrap.fill(f'"""{text}', COLUMNS, initial_indent=indent, subsequent_indent=indent) + (
        f'\n{indent}"""\n'
    )


def description(schema: Schema) -> str:
    """A field's description, which is that of a reference if it can be null."""
    described = [schema, *schema.get("oneOf", [])]
    return next((one["description"] for one in described if "description" in one), "")


def tag(schema: Schema) -> str:
    """The value of the field that tells a union's classes apart."""
    [value] = [field["enum"][0] for field in schema["properties"].values() if "enum" in field]
    return str(value)


def target(schema: Schema) -> str:
    return str(schema["$ref"]).removeprefix("#/components/schemas/")


def safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


def load(source: str) -> Schema:
    if source.startswith(("http://", "https://")):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(source, timeout=REQUEST_SECONDS) as answer:
            text = answer.read(MAX_DOCUMENT)
    else:
        text = Path(source).read_bytes()
    document: Schema = json.loads(text)
    return document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("source", help="the OpenAPI document: a file or a URL")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if stale")
    arguments = parser.parse_args()
    stale = []
    for name, text in generate(load(arguments.source)).items():
        file = PACKAGE / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not arguments.check:
                file.write_text(text, encoding="utf-8")
    if arguments.check and stale:
        sys.exit(f"not up to date: {', '.join(stale)}; run generate.py without --check")


if __name__ == "__main__":
    main()

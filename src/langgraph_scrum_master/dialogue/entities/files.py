"""Reads and writes entity files."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from langgraph_scrum_master._internal.files import LARGEST_DOCUMENT, load_text, write_atomically
from langgraph_scrum_master._internal.serialisation import from_plain
from langgraph_scrum_master._internal.shapes import dict_of
from langgraph_scrum_master.dialogue.entities.entity import Entity
from langgraph_scrum_master.errors import DecodeError, ScrumMasterError

FORMATS = (".json", ".jsonl", ".toml")


def read_entities(path: Path) -> tuple[list[Entity], int]:
    """The entities in a file, and the dialogue turn at which it was saved."""
    text = load_text(path, LARGEST_DOCUMENT)
    try:
        data = _parse(path.suffix.lower(), text)
    except ValueError as error:
        raise DecodeError(f"{str(path)!r} cannot be read as {' or '.join(FORMATS)}: {error}") from error
    rows, turn = (data.get("entities"), data.get("turn", 0)) if isinstance(data, Mapping) else (data, 0)
    if not isinstance(rows, list) or not isinstance(turn, int):
        raise DecodeError(f"{str(path)!r} must contain a list of `entities`, each with a `canonical_name`")
    return [_entity(row, f"{path.name}, entity {number}") for number, row in enumerate(rows, 1)], turn


def write_entities(path: Path, entities: Iterable[Entity], turn: int) -> None:
    """Write the entities as JSON, atomically."""
    data = {"turn": turn, "entities": [entity.to_dict() for entity in entities]}
    write_atomically(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def _parse(suffix: str, text: str) -> Any:
    if suffix == ".json":
        return json.loads(text)
    if suffix == ".jsonl":
        return [json.loads(line) for line in text.split("\n") if line.strip()]
    if suffix == ".toml":
        return tomllib.loads(text)
    raise ValueError(f"unknown suffix {suffix!r}")


def _entity(row: object, where: str) -> Entity:
    # Attribute values in files may be numbers.
    texts = {name: str(value) for name, value in dict_of(dict_of(row).get("attributes")).items()}
    try:
        return from_plain(Entity, {**row, "attributes": texts} if isinstance(row, Mapping) else row)
    except ScrumMasterError as error:
        raise DecodeError(f"{where}: {error}") from error

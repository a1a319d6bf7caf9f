"""Reading what others wrote: a dict or an object, a key there or not, of this type or another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, cast, get_args
from urllib.parse import quote, unquote

from langgraph_scrum_master._internal.files import UnfitFileError, read_bytes
from langgraph_scrum_master.errors import ConfigError

T = TypeVar("T")

_LARGEST = 1_000_000
"""Bytes of a file that is read."""


def read(thing: object, name: str, default: Any = None) -> Any:
    """A dict's key or an object's attribute."""
    # Asked for each message several times: whether something is a Mapping takes much longer to find out.
    if isinstance(thing, dict):
        return thing.get(name, default)
    try:
        found = getattr(thing, name, default)
        return thing.get(name, default) if found is default and isinstance(thing, Mapping) else found
    # A host's own type may raise anything here.
    except Exception:
        return default


def unwrapped(thing: object) -> tuple[Mapping[str, Any], str]:
    """A graph's state as a mapping, and when it was saved if it comes from a checkpoint (a `StateSnapshot`)."""
    if isinstance(thing, tuple) and {"values", "created_at"}.issubset(getattr(thing, "_fields", ())):
        return mapping_of(read(thing, "values")), text_of(read(thing, "created_at"))
    return mapping_of(thing), ""


def mapping_of(thing: object) -> Mapping[str, Any]:
    """A graph's state as a mapping, whether it is a dict, a dataclass or a Pydantic model; empty for anything else."""
    if isinstance(thing, dict) or isinstance(thing, Mapping):  # noqa: SIM101 - the first is fast
        return thing
    if is_dataclass(thing) and not isinstance(thing, type):
        return {field.name: getattr(thing, field.name) for field in fields(thing)}
    return dict(vars(thing)) if hasattr(thing, "model_fields_set") else {}


def truthy(thing: object) -> bool:
    """Whether the thing counts as true; what cannot say does not."""
    try:
        return bool(thing)
    # A host's own type may raise anything here.
    except Exception:
        return False


def absent(thing: object) -> bool:
    """Whether there is nothing: None, or an empty text or collection. A zero or False is something."""
    # Asked at each step: a union of types would be made anew each time, and a Mapping takes longest to find out.
    return thing is None or (isinstance(thing, (str, list, tuple, set, dict, Mapping)) and not thing)


def well_formed(text: str) -> str:
    """The text with what is no character (a lone surrogate) replaced, fit for any encoder."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def storable(value: T) -> T:
    """The value without what a database would refuse in texts: lone surrogates and NUL."""
    cleaned: Any = value
    match cleaned:
        case str():
            cleaned = well_formed(cleaned).replace("\0", "\ufffd")
        case dict():
            cleaned = {storable(key): storable(item) for key, item in cleaned.items()}
        case list():
            cleaned = [storable(item) for item in cleaned]
    return cast(T, cleaned)


def as_label(name: str) -> str:
    """The name as one label of a store's namespace, which may hold no dot."""
    return quote(name, safe="", errors="surrogatepass").replace(".", "%2E")


def from_label(label: str) -> str:
    """The name that `as_label` made the label of."""
    return unquote(label, errors="surrogatepass")


def text_of(thing: object) -> str:
    """The thing if it is text, else nothing."""
    return thing if isinstance(thing, str) else ""


def items_of(thing: object) -> Sequence[Any]:
    """The thing if it is a list or a tuple, else nothing."""
    return thing if isinstance(thing, (list, tuple)) else ()


def dict_of(thing: object) -> Mapping[str, Any]:
    """The thing if it is a dict, else nothing."""
    return thing if isinstance(thing, dict) or isinstance(thing, Mapping) else {}  # noqa: SIM101 - the first is fast


def content_text(content: object) -> str:
    """The text of a message's content, given as text or as blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, (_block_text(block) for block in items_of(content))))


def fields_text(thing: object) -> str:
    """A dict or an object's fields as lines of `name: value`, empty ones left out; anything else as text."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, list | tuple):
        return ", ".join(fields_text(item) for item in thing)
    if not isinstance(thing, Mapping):
        return "" if thing is None else str(thing)
    shown = ((str(name).replace("_", " "), fields_text(value)) for name, value in thing.items())
    return "\n".join(f"{name}: {value}" for name, value in shown if value)


def _block_text(block: object) -> str:
    return block if isinstance(block, str) else text_of(read(block, "text"))


def file_text(path: Path) -> str:
    """The text of a file that others wrote. Raises ValueError, saying why, if it has none to give."""
    try:
        # A pipe or a device would keep whoever reads it waiting.
        if not path.is_file():
            raise ValueError("is no file")
        content = read_bytes(path, _LARGEST)
    except UnfitFileError as error:
        raise ValueError(f"is {error.strerror}") from error
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    if b"\0" in content:
        raise ValueError("is binary")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8") from error


def switch(text: str) -> bool:
    """What a setting that is on or off says."""
    try:
        return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
    except KeyError:
        raise ValueError(text) from None


def one_of(name: str, value: str, valid: object) -> str:
    """The value, if it is one of those; else an error that names them."""
    names = get_args(valid)
    if value not in names:
        raise ConfigError(f"{name} must be one of {', '.join(names)}, got {value!r}")
    return value

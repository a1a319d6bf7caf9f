"""Reads untrusted data: dicts or objects, with missing keys and unexpected types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, cast, get_args
from urllib.parse import quote, unquote

from langgraph_scrum_master._internal.files import UnfitFileError, read_bytes
from langgraph_scrum_master._internal.foreign import recordable
from langgraph_scrum_master.errors import ConfigError

T = TypeVar("T")

_LARGEST = 1_000_000
"""The maximum size of a file in bytes."""


def read(thing: object, name: str, default: Any = None) -> Any:
    """A dict's key or an object's attribute."""
    # A hot path: the check for Mapping is much slower.
    if isinstance(thing, dict):
        return thing.get(name, default)
    try:
        value = getattr(thing, name, default)
        return thing.get(name, default) if value is default and isinstance(thing, Mapping) else value
    # A host's own type may raise anything here.
    except BaseException as error:
        recordable(error)
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
    """Whether the thing is true. False if its `__bool__` raises."""
    try:
        return bool(thing)
    # A host's own type may raise anything here.
    except BaseException as error:
        recordable(error)
        return False


def absent(thing: object) -> bool:
    """Whether the thing is None or an empty text or collection. 0 and False are not absent."""
    # A hot path: a union of types would be created on each call, and the check for Mapping is the slowest.
    return thing is None or (isinstance(thing, (str, list, tuple, set, dict, Mapping)) and not thing)


def well_formed(text: str) -> str:
    """The text with lone surrogates replaced, so that it can be encoded."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def storable(value: T) -> T:
    """The value without lone surrogates and NUL, which databases reject."""
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
    """The name as a label of a store's namespace, which must not have dots."""
    return quote(name, safe="", errors="surrogatepass").replace(".", "%2E")


def from_label(label: str) -> str:
    """The inverse of `as_label`."""
    return unquote(label, errors="surrogatepass")


def is_printable(thing: object) -> bool:
    """Whether the thing is a text to see, without control characters and invisible ones."""
    return isinstance(thing, str) and bool(thing.strip()) and thing.isprintable()


def text_of(thing: object) -> str:
    """The thing if it is a text, else an empty text."""
    return thing if isinstance(thing, str) else ""


def items_of(thing: object) -> Sequence[Any]:
    """The thing if it is a list or a tuple, else an empty tuple."""
    return thing if isinstance(thing, (list, tuple)) else ()


def dict_of(thing: object) -> Mapping[str, Any]:
    """The thing if it is a mapping, else an empty dict."""
    return thing if isinstance(thing, dict) or isinstance(thing, Mapping) else {}  # noqa: SIM101 - the first is fast


def content_text(content: object) -> str:
    """The text of a message's content, which is a text or a list of blocks."""
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, (_block_text(block) for block in items_of(content))))


def fields_text(thing: object) -> str:
    """A mapping as lines of `name: value` without empty ones; anything else as text."""
    if isinstance(thing, str):
        return thing
    if isinstance(thing, list | tuple):
        return ", ".join(fields_text(item) for item in thing)
    if not isinstance(thing, Mapping):
        return "" if thing is None else str(thing)
    lines = ((str(name).replace("_", " "), fields_text(value)) for name, value in thing.items())
    return "\n".join(f"{name}: {value}" for name, value in lines if value)


def _block_text(block: object) -> str:
    return block if isinstance(block, str) else text_of(read(block, "text"))


def file_text(path: Path, folder: Path | None = None) -> str:
    """The text of an untrusted file, which must be in the folder if one is given. Raises ValueError with the reason."""
    try:
        # Reading a pipe or a device can block.
        if not path.is_file():
            raise ValueError("is not a file")
        content = read_bytes(path, _LARGEST, folder=folder)
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
    """Parse a boolean setting. Raises ValueError."""
    try:
        return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text.lower()]
    except KeyError:
        raise ValueError(text) from None


def one_of(name: str, value: str, valid: object) -> str:
    """The value, if it is valid for this `Literal`. Raises ConfigError with the valid values."""
    names = get_args(valid)
    if value not in names:
        raise ConfigError(f"{name} must be one of {', '.join(names)}, got {value!r}")
    return value

"""Settings, each declared once as the field of a dataclass.

    deadline: float = setting(2.0, number_between(0.001, 3600))
    '''Seconds that all sources share.'''

From this come the default, the validation and its message, the environment variable and how its text is parsed, the
key in `scrum-master.toml`, and the row in the documentation, whose text is the docstring.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from string import Formatter
from typing import Any, Generic, TypeVar, get_args

from langgraph_scrum_master._internal.shapes import is_printable, switch
from langgraph_scrum_master.errors import ConfigError

T = TypeVar("T")

ENV_PREFIX = "SCRUM_MASTER_"
"""The prefix of the environment variables."""

_DECLARATION = "setting"
"""The key in the metadata of a field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Values(Generic[T]):
    """The values that a setting takes."""

    expected: str
    """Completes "… must be"."""
    check: Callable[[str, Any], Any]
    """Maps a name and a value to the value as it is stored. Raises ConfigError."""
    parse: Callable[[str], Any] = str
    """Maps the text of a variable to a value. Raises ValueError."""
    in_text: str = "a text"
    """The same as `expected`, for a text that cannot be parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting, as it was declared."""

    name: str
    """The field, and the key in `scrum-master.toml`."""
    default: Any
    values: Values[Any]
    path: bool
    """Whether it is a path, which `scrum-master.toml` gives relative to its own directory."""

    @property
    def variable(self) -> str:
        """The environment variable."""
        return ENV_PREFIX + self.name.upper()

    def checked(self, value: object) -> Any:
        """The value as it is stored. Raises ConfigError."""
        return self.values.check(self.name, value)

    def parsed(self, text: str) -> Any:
        """The value that the text of the variable denotes, not checked yet. Raises ConfigError."""
        try:
            return self.values.parse(text)
        except ValueError as error:
            raise ConfigError(f"{self.variable} must be {self.values.in_text}, got {text!r}") from error


def setting(default: T, values: Values[T], *, path: bool = False) -> T:
    """The field of a dataclass that is a setting. A dict as default is copied, and is left out of the hash."""
    metadata = {_DECLARATION: (values, path)}
    made: Any
    if isinstance(default, dict):
        made = field(default_factory=default.copy, hash=False, metadata=metadata)
    else:
        made = field(default=default, metadata=metadata)
    declared: T = made
    return declared


@cache
def settings_of(config: type) -> tuple[Setting, ...]:
    """The settings that a dataclass declares, in their order."""
    return tuple(
        Setting(
            name=each.name,
            default=each.default if each.default_factory is MISSING else each.default_factory(),
            values=each.metadata[_DECLARATION][0],
            path=each.metadata[_DECLARATION][1],
        )
        for each in fields(config)
        if _DECLARATION in each.metadata
    )


def check_settings(config: object) -> None:
    """Check all settings of a frozen dataclass, and normalise them in place. Raises ConfigError."""
    declaring: Any = type(config)
    for each in settings_of(declaring):
        value = getattr(config, each.name)
        stored = each.checked(value)
        if stored is not value:
            object.__setattr__(config, each.name, stored)


def environment_values(config: type, environ: Mapping[str, str]) -> dict[str, Any]:
    """The settings of a dataclass that have a variable, by name; empty variables count as unset."""
    return {
        each.name: each.parsed(environ[each.variable]) for each in settings_of(config) if environ.get(each.variable)
    }


def whole_number(low: int) -> Values[int]:
    """Whole numbers from `low`."""
    expected = f"a whole number, {low} or more"
    return _values(expected, lambda value: is_whole(value) and value >= low, int, "a whole number")


def number_between(low: float, high: float) -> Values[float]:
    """Numbers from `low` to `high`."""

    def fits(value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high

    return _values(f"a number from {low} to {high}", fits, float, "a number")


def flag() -> Values[bool]:
    """True or False."""
    return _values("True or False", lambda value: isinstance(value, bool), switch, "true or false")


def choice_of(literal: Any) -> Values[Any]:
    """The values of a `Literal`."""
    names = get_args(literal)
    return _values(f"one of {names}", lambda value: value in names)


def plain_text() -> Values[str]:
    """Non-empty texts."""
    return _values("a non-empty text", lambda value: isinstance(value, str) and bool(value))


def printable_text() -> Values[str]:
    """Non-empty texts without control characters."""
    expected = "a non-empty text without control characters"
    return _values(expected, is_printable)


def template_text(needed: str, *others: str, at_the_end: bool = False) -> Values[str]:
    """Templates for `str.format` with the field that is needed and no others than these; empty for none."""
    expected = f"a text with {{{needed}}}, and no other fields than {', '.join(f'{{{name}}}' for name in others)}"
    check = _check(expected, lambda value: value == "" or _has_fields(value, needed, others))
    if not at_the_end:
        return Values(expected=expected, check=check)
    ending = f"a text that ends in {{{needed}}}"
    ends = _check(ending, lambda value: value == "" or value.endswith(f"{{{needed}}}"))
    return Values(expected=f"{expected}, {ending}", check=lambda name, value: ends(name, check(name, value)))


def names_among(known: Iterable[str]) -> Values[Any]:
    """Sequences of known names, stored as a tuple; as a text, separated by commas."""
    valid = frozenset(known)
    expected = f"among {sorted(valid)}"
    among = _check(expected, valid.issuperset)
    return Values(expected=expected, check=lambda name, value: among(name, _names(name, value)), parse=names_in)


def names_by_key() -> Values[dict[str, tuple[str, ...]]]:
    """Dicts of sequences of names, which are stored as tuples; as a text, JSON."""
    expected = "a dict of agent to state keys"
    is_mapping = _check(expected, lambda value: isinstance(value, Mapping))
    return Values(
        expected=expected,
        check=lambda name, value: {key: _names(name, names) for key, names in is_mapping(name, value).items()},
        parse=json.loads,
        in_text="a JSON object",
    )


def or_none(values: Values[T]) -> Values[T | None]:
    """These values, or None."""
    return Values(
        expected=values.expected,
        check=lambda name, value: None if value is None else values.check(name, value),
        parse=values.parse,
        in_text=values.in_text,
    )


def anything() -> Values[Any]:
    """All values; whoever uses the setting checks it."""
    return Values(expected="anything", check=lambda name, value: value)


def is_whole(value: object) -> bool:
    """Whether the value is a whole number; True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool)


def names_in(text: str) -> tuple[str, ...]:
    """The names in a text, separated by commas."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _values(
    expected: str, fits: Callable[[Any], bool], parse: Callable[[str], Any] = str, in_text: str = "a text"
) -> Values[Any]:
    return Values(expected=expected, check=_check(expected, fits), parse=parse, in_text=in_text)


def _check(expected: str, fits: Callable[[Any], bool]) -> Callable[[str, Any], Any]:
    """A check that returns the value if it fits."""

    def check(name: str, value: Any) -> Any:
        if not fits(value):
            raise ConfigError(f"{name} must be {expected}, got {value!r}")
        return value

    return check


def _names(name: str, value: object) -> tuple[str, ...]:
    names = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str | bytes) else None
    if names is None or not all(isinstance(each, str) for each in names):
        raise ConfigError(f"{name} must be a sequence of names, got {value!r}")
    return names


def _has_fields(template: Any, needed: str, others: tuple[str, ...]) -> bool:
    """Whether the template has the needed field, and all its fields are known and unformatted."""
    try:
        parts = [part[1:] for part in Formatter().parse(template) if part[1] is not None]
    except (TypeError, ValueError):
        return False
    names = [name for name, spec, conversion in parts if not spec and not conversion]
    return needed in names and len(names) == len(parts) and set(names) <= {needed, *others}

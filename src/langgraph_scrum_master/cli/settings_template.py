"""Settings files to start from: every setting with its meaning and its default, commented out."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator
from textwrap import dedent, wrap

from langgraph_scrum_master._internal.settings import Setting, settings_of
from langgraph_scrum_master.briefing.settings import BriefingConfig
from langgraph_scrum_master.cli.settings import CONFIGS, STORE_SETTING

_LINK = re.compile(r"\[([^\[\]]+)\]\([^()]*\)")


def toml_template() -> str:
    """A `scrum-master.toml` that changes nothing."""
    head = "# Settings of scrum-master. Remove the `#` in front of a setting to change it.\n"
    return "\n".join([head, *(block for config in CONFIGS for block in _blocks(config, " = "))])


def briefing_template() -> str:
    """A `.claude/scrum-master.local.md` that changes nothing."""
    return "\n".join(["---", *_blocks(BriefingConfig, ": ", without=STORE_SETTING), "---", ""])


def docstrings(config: type) -> dict[str, str]:
    """The docstrings of a dataclass's fields, also the inherited ones, each on one line."""
    found: dict[str, str] = {}
    for each in reversed(config.__mro__[:-1]):
        body = ast.parse(dedent(inspect.getsource(each))).body[0]
        assert isinstance(body, ast.ClassDef)
        for field, after in zip(body.body, body.body[1:], strict=False):
            match field, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found


def _blocks(config: type, equals: str, without: str = "") -> Iterator[str]:
    meanings = docstrings(config)
    for each in settings_of(config):
        if each.name != without:
            lines = [*wrap(_LINK.sub(r"\1", meanings[each.name]), 100), *_valid(each)]
            comments = "\n".join(f"# {line}" for line in lines)
            yield f"{comments}\n# {each.name}{equals}{_shown(each)}\n"


def _valid(setting: Setting) -> list[str]:
    expected = setting.values.expected
    return [] if expected == "anything" else wrap(f"Must be {expected.replace('True or False', 'true or false')}.", 100)


def _shown(setting: Setting) -> str:
    """The default in the file's syntax; an empty text or table where there is none."""
    if setting.default == {}:
        return "{}"
    return '""' if setting.default is None else json.dumps(setting.default)

"""Pages of the documentation as a reader follows them: files written, commands and examples run, in order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

ANYTHING = "…"
"""Stands for whatever a command prints there."""

READER_BIN = "READER_BIN"
"""The environment variable that names the folder of the programs that a reader has; by default those of this Python."""

STOP = "^C"
"""Where a reader stops a command that would go on."""

_BLOCK = re.compile(
    r'^(?P<fence>`{3,})(?P<language>\w*)(?: title="(?P<title>[^"\n]+)")?\n(?P<text>.*?)^(?P=fence)$', re.M | re.S
)
_OTHER_CODE = re.compile(r"^[ \t]*(?:```|~~~|<pre\b).*|(?<=\n\n)(?: {4}|\t).*", re.M)
_COMMAND = re.compile(r"\$ (?P<command>(?:.*\\\n)*.*)\n(?P<shown>(?:(?!\$ ).*\n)*)")
_END = "<the end of a step>"


class UnrunError(AssertionError):
    """A page has code that nothing would run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A block of code of a page."""

    place: str
    language: str
    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that a reader does, as shell, and what the page shows to come of it."""

    place: str
    command: str
    shown: str = ""
    logs: bool = True
    """Whether the page shows the log too."""


def blocks(page: Path) -> list[Block]:
    """All code of a page; what is no fenced block at the margin is refused."""
    text = page.read_text(encoding="utf-8")
    if other := _OTHER_CODE.search(_BLOCK.sub("", text)):
        raise UnrunError(f"{page.name}: code is written in closed fences at the margin, not as {other[0]!r}")
    return [
        Block(
            place=f"{page.name}:{text.count(chr(10), 0, found.start()) + 1}",
            language=found["language"],
            title=found["title"] or "",
            text=found["text"],
        )
        for found in _BLOCK.finditer(text)
    ]


def file_of(page: str, title: str) -> str:
    """A file as a page of the documentation has its reader write it."""
    (text,) = (block.text for block in blocks(ROOT / "docs" / page) if block.title == title)
    return text


def steps(found: Sequence[Block], not_run: Sequence[str] = ()) -> Iterator[Step]:
    """What a reader does, but for the blocks and commands that begin so; a block that is nothing to do is refused."""
    left_out = tuple(not_run)
    for i, block in enumerate(found):
        before, after = found[max(i - 1, 0)], found[min(i + 1, len(found) - 1)]
        output = _is(before, "python") and _is(block, "text")
        if output or block.text.startswith(left_out):
            continue
        if block.title:
            yield Step(place=block.place, command=_written(block))
        elif _is(block, "python"):
            shown = after.text if _is(after, "text") else ""
            yield Step(place=block.place, command=f"python -c {shlex.quote(block.text)}", shown=shown, logs=False)
        elif _is(block, "console"):
            yield from (step for step in _commands(block) if not step.command.startswith(left_out))
        else:
            raise UnrunError(
                f"{block.place}: nothing runs this {block.language or 'bare'} block: write console with `$ `, python, "
                'text after the python that prints it, or a file with title="name"'
            )


def problems(todo: Sequence[Step], folder: Path, home: Path) -> list[str]:
    """What does not end as the page says, when all is done in this folder in one shell."""
    script = folder.with_suffix(".sh")
    script.write_text("\n".join(["exec 2>&1", *map(_script, todo)]), encoding="utf-8")
    programs = os.environ.get(READER_BIN, Path(sys.executable).parent)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    # Tables on a page are no wider than this.
    environment = {**os.environ, "PATH": path, "HOME": str(home), "COLUMNS": "100"}
    done = subprocess.run(
        ["bash", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    ended = re.findall(rf"(.*?)\n{_END} (\d+)\n", done.stdout, re.S)
    if len(ended) < len(todo):
        return [f"{todo[len(ended)].place}: the shell ended: {done.stdout[-2000:]}{done.stderr}"]
    return [
        f"{step.place}: exit code {code}, and printed:\n{printed}\n-- where the page shows:\n{step.shown}"
        for step, (printed, code) in zip(todo, ended, strict=True)
        if code != "0" or not _matches(printed, step)
    ]


def _is(block: Block, language: str) -> bool:
    return block.language == language and not block.title


def _written(block: Block) -> str:
    folder = shlex.quote(str(Path(block.title).parent))
    return f"mkdir -p {folder}\ncat > {shlex.quote(block.title)} <<'{_END}'\n{block.text}{_END}"


def _commands(block: Block) -> list[Step]:
    found = list(_COMMAND.finditer(block.text))
    if not found or "".join(each[0] for each in found) != block.text:
        raise UnrunError(f"{block.place}: a console block begins with a command, `$ ` before it")
    return [
        Step(place=f"{block.place}: {each['command']}", command=each["command"], shown=each["shown"]) for each in found
    ]


def _script(step: Step) -> str:
    before, stops, _ = step.shown.partition(STOP)
    command = _until_stopped(step.command, before.count("\n")) if stops else step.command
    return f"{command}\nprintf '\\n%s %s\\n' '{_END}' $?"


def _until_stopped(command: str, lines: int) -> str:
    """The command in the background, with Ctrl-C when it has printed so many lines."""
    # Job control: without it, what runs in the background does not hear of Ctrl-C.
    return f"""set -m
: > "$HOME/printed"
({command}) > "$HOME/printed" 2>&1 &
set +m
for _ in {{1..600}}; do [ "$(wc -l < "$HOME/printed")" -ge {lines} ] && break; sleep 0.1; done
kill -INT -- -$!
wait $!
(exit_code=$?; cat "$HOME/printed"; exit $exit_code)"""


def _matches(printed: str, step: Step) -> bool:
    lines = [line.rstrip() for line in printed.splitlines() if step.logs or "[info" not in line]
    pattern = ".*".join(map(re.escape, step.shown.replace(STOP, "").strip().split(ANYTHING)))
    return re.fullmatch(pattern, "\n".join(lines).strip(), re.S) is not None

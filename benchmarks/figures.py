"""Run all benchmarks, show what they print, and keep it as a page of the documentation: `make figures`."""

from __future__ import annotations

import ast
import os
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "figures.md"

LARGE = {"bench_memory.py": ["--large"]}
"""What is measured at its full size for the page."""


_UNITS = {
    "x": r"([\d.]+) x\b",
    "ms": r"([\d.]+) ms\b",
    "MB": r"([\d.]+) MB\b",
    "KB": r"([\d.]+) KB\b",
    "s": r"([\d.]+) s\b",
    "of": r"1/([\d.]+)",
    "": r"\b(\d\.\d+)\b",
}
"""How a figure is printed, by its unit: a part `of` another, and a share, which has none, are the better the larger."""


def main() -> None:
    now = datetime.now(UTC).date().isoformat()
    parts = [head(now, platform.python_version(), os.cpu_count())]
    for script in sorted(HERE.glob("bench_*.py")):
        print(f"== {script.name}", file=sys.stderr)
        parts.append(section(script, _run(script)))
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def head(day: str, python: str, cores: int | None) -> str:
    """How the page begins."""
    return (
        f"# Figures\n\nWhat `make figures` printed on {day}, with Python {python} on a machine with {cores} cores.\n"
        "A bar is a target; a figure that misses it is marked **missed**. Ratios compare two measurements of one run\n"
        "and should be similar on other machines; times are not. The quality of ranking on conversations and projects\n"
        "is reported in [how memories are ranked](ranking.md)."
    )


def section(script: Path, lines: Sequence[str]) -> str:
    """What a benchmark is about, and what it printed."""
    about = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
    told = "\n".join(f"- {line}" + (" **missed**" if missed(line) else "") for line in lines)
    return f"## {script.stem.removeprefix('bench_').capitalize()}\n\n{about}\n\n{told}"


def missed(line: str) -> bool:
    """Whether a line's first figure of its bar's unit is worse than the bar; of several bars, one is enough."""
    found = re.search(r"\bbar: ([^)]+)\)", line)
    return found is not None and not any(_kept(line[: found.start()], bar) for bar in found[1].split(" or "))


def _kept(figures: str, bar: str) -> bool:
    amount, unit = ("of", bar[2:])[::-1] if bar.startswith("1/") else (*bar.split(), "")[:2]
    figure = re.search(_UNITS[unit], figures)
    if figure is None:
        raise ValueError(f"no figure to hold against the bar {bar!r} in {figures!r}")
    larger_is_better = unit in ("of", "")
    return float(figure[1]) >= float(amount) if larger_is_better else float(figure[1]) <= float(amount)


def _run(script: Path) -> list[str]:
    lines = []
    command = [sys.executable, str(script), *LARGE.get(script.name, [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    if process.returncode:
        sys.exit(f"{script.name} failed with exit code {process.returncode}")
    return [line for line in lines if line]


if __name__ == "__main__":
    main()

"""Run all benchmarks, show what they print, and keep it as a page of the documentation: `make figures`."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "figures.md"

LARGE = {"bench_memory.py": ["--large"]}
"""What is measured at its full size for the page."""


def main() -> None:
    parts = [_head()]
    for script in sorted(HERE.glob("bench_*.py")):
        print(f"== {script.name}", file=sys.stderr)
        lines = _run(script)
        about = (ast.get_docstring(ast.parse(script.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
        told = "\n".join(lines)
        parts.append(f"## {script.stem.removeprefix('bench_').capitalize()}\n\n{about}\n\n```text\n{told}\n```")
    PAGE.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _head() -> str:
    today = datetime.now(UTC).date().isoformat()
    return (
        f"# Figures\n\nWhat `make figures` printed on {today}, with Python {platform.python_version()} on a machine "
        f"with {os.cpu_count()} cores. Ratios are taken in one run, and should be much the same elsewhere; times are "
        "not. Quality on conversations and projects is told in [how memories are ranked](ranking.md)."
    )


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

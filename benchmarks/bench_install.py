"""What `pip install .` brings: packages, size on disk and time, in a fresh environment with the pinned versions.

The time depends on the cache of pip. pip itself is not counted.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

ROOT = Path(__file__).parents[1]
PIP = ["-m", "pip", "--disable-pip-version-check"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder, "bin", "python")
        [installed] = Path(folder).glob("lib/python*/site-packages")
        before, known = size(installed), packages(python)
        started = perf_counter()
        install = [str(python), *PIP, "install", "-q", "-c", str(ROOT / "constraints.txt"), str(ROOT)]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        took = perf_counter() - started
        added = packages(python) - known
        langgraph = with_what_it_needs(python, "langgraph")
        print(f"pip install: {len(added)} packages, {(size(installed) - before) / 1e6:.0f} MB on disk, in {took:.0f} s")
        print(f"of these {len(added & langgraph)} packages come with LangGraph")


def size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def packages(python: Path) -> set[str]:
    listed = subprocess.run([python, *PIP, "list", "--format=json"], check=True, capture_output=True, text=True)
    return {normal(each["name"]) for each in json.loads(listed.stdout)}


def with_what_it_needs(python: Path, package: str) -> set[str]:
    """The package and all that it requires, as far as it is installed."""
    script = (
        "import json, re, sys\n"
        "from importlib.metadata import requires\n"
        "from pip._vendor.packaging.requirements import Requirement\n"
        "todo, seen = [sys.argv[1]], set()\n"
        "while todo:\n"
        "    name = todo.pop()\n"
        "    if name in seen: continue\n"
        "    seen.add(name)\n"
        "    for each in map(Requirement, requires(name) or ()):\n"
        "        if each.marker is None or each.marker.evaluate({'extra': ''}): todo.append(each.name)\n"
        "print(json.dumps(list(seen)))\n"
    )
    found = subprocess.run([python, "-c", script, package], check=True, capture_output=True, text=True)
    return {normal(name) for name in json.loads(found.stdout)}


def normal(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


if __name__ == "__main__":
    main()

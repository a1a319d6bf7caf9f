"""Team scenarios over this project's own documents and the decisions of its example team: is a stuck agent detected,
and does the injected context contain the answer? The scenarios were written for this project
(`benchmarks/data/serving`), half of them with other words than the records; `python benchmarks/serving.py --errors 20`
lists failures.
"""

from __future__ import annotations

import asyncio

import structlog

from serving import measured


async def main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    for name, recorded in (("offline", False), ("with the need written out as a good chat model would", True)):
        found, _ = await measured(recorded=recorded)
        print(
            f"{name}: of the stuck agents whose answer is in memory, {found.served:.2f} get it; "
            f"of all stuck agents, {found.noticed:.2f} are detected"
        )
        print(
            f"{name}: of the injected items, {found.precision:.2f} contain the answer; {found.items:.1f} items and "
            f"{found.tokens:.0f} tokens per injection; of the agents whose answer is not in memory, {found.noise:.2f} "
            f"get an injection; of the healthy teams, {found.intruded:.2f} get an injection and {found.alarmed:.2f} "
            "have a gap"
        )


if __name__ == "__main__":
    asyncio.run(main())

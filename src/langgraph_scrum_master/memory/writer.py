"""Writes: one transaction updates records together with all derived data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from langgraph_scrum_master.errors import StoreError
from langgraph_scrum_master.memory.database import Database, Entry, FeatureRow, ShelfRow, Statements, StoredRow
from langgraph_scrum_master.memory.records import (
    SEARCHED,
    Kind,
    Record,
    agent_of,
    created_of,
    references_of,
    session_of,
)
from langgraph_scrum_master.memory.shelf import Shelf, count_new, facets_of, words_of, wrong_dimensions
from langgraph_scrum_master.memory.statistics import SAVED_EVERY, Statistics
from langgraph_scrum_master.protocols import Embedder
from langgraph_scrum_master.rank.corpus import CorpusCounts
from langgraph_scrum_master.rank.embedders import static_model
from langgraph_scrum_master.rank.features import Array, Features, features_of, number, static_tokens
from langgraph_scrum_master.rank.query import document_vectors, meaning_vectors, packed_vector
from langgraph_scrum_master.rank.relevance import CONTEXT, context_vectors
from langgraph_scrum_master.text.references import canonical

REACH = max(off for off, _ in CONTEXT)
"""The distance in positions up to which a neighbour counts."""

REBUILD_BATCH = 1_000
"""Records per step of a rebuild."""


class _Prepared(NamedTuple):
    """A record with its features and vectors, computed before the transaction."""

    record: Record
    features: Features
    vector: Array
    meaning: Array
    data: str


class Writer:
    """Writes to the shelves of one database."""

    def __init__(self, database: Database, most_records: int | None = None) -> None:
        self._database = database
        self._most_records = most_records

    def put(
        self, shelf: Shelf, records: Sequence[Record], embedder: Embedder, name: str = ""
    ) -> list[tuple[int, Kind]]:
        """Write the new and changed records and return their ids and kinds. A record with the same key is replaced.

        The shelf stores the name of the embedder: its class, or `name`.
        """
        changed = _changed(shelf, records)
        if not changed:
            return []
        # Before the transaction, so that a slow embedder does not block other writers.
        prepared = _prepare(shelf, changed, embedder)
        with self._database.writing(shelf.tenant, shelf.name) as (statements, row):
            row = _with_embedder(row, name or type(embedder).__name__, prepared)
            before = _before(statements, row.id, prepared)
            self._check_quota(statements, shelf.tenant, len(prepared) - len(before))
            slots = _slots(statements, row.id, prepared, before)
            unlinked = self._delete(statements, row, list(before.values()))
            contexts = _contexts(statements, row.id, prepared, slots)
            entries = [
                _entry(each, slot, contexts.new[i]) for i, (each, slot) in enumerate(zip(prepared, slots, strict=True))
            ]
            ids = statements.insert(row.id, entries)
            statements.set_contexts(row.id, contexts.changed)
            _link(statements, row.id, list(zip(ids, prepared, strict=True)), unlinked)
            written = row._replace(
                last=ids[-1],
                epoch=row.epoch + bool(before),
                pending=row.pending + len(ids),
                records=row.records + len(ids) - len(before),
            )
            statements.touch(_with_saved_statistics(statements, written))
        return [(each, one.record.kind) for each, one in zip(ids, prepared, strict=True)]

    def remove(self, shelf: Shelf, kinds: Sequence[Kind], keys: Sequence[str]) -> int:
        """Delete the records with these keys and return their number."""
        with self._database.writing(shelf.tenant, shelf.name) as (statements, row):
            removed = [each for kind in kinds for each in statements.stored_rows(row.id, kind, keys).values()]
            self._remove(statements, row, removed)
        return len(removed)

    def remove_ids(self, shelf: Shelf, ids: Sequence[int]) -> int:
        """Delete the records with these ids and return their number."""
        with self._database.writing(shelf.tenant, shelf.name) as (statements, row):
            removed = statements.stored_rows_by_id(row.id, ids)
            self._remove(statements, row, removed)
        return len(removed)

    def save_notes(self, shelf: Shelf, book: str, notes: Mapping[str, object]) -> None:
        """Write notes into a book of the shelf; those that are None are removed."""
        with self._database.writing(shelf.tenant, shelf.name) as (statements, row):
            statements.save_notes(row.id, book, notes)

    def _check_quota(self, statements: Statements, tenant: str, more: int) -> None:
        if self._most_records is None or more <= 0:
            return
        total = sum(row.records for _, row in statements.shelves(tenant))
        if total + more > self._most_records:
            raise StoreError(
                f"{tenant!r} has {total} of at most {self._most_records} records: {more} more do not fit. Forget some, "
                "or raise most_records"
            )

    def _remove(self, statements: Statements, row: ShelfRow, removed: Sequence[StoredRow]) -> None:
        if not removed:
            return
        unlinked = self._delete(statements, row, removed)
        for session in {each.session for each in removed if each.session}:
            around = [each.position for each in removed if each.session == session]
            statements.set_contexts(row.id, _contexts_of(statements, row.id, session, around))
        _link(statements, row.id, [], unlinked)
        statements.touch(row._replace(epoch=row.epoch + 1, records=row.records - len(removed)))

    def _delete(self, statements: Statements, row: ShelfRow, removed: Sequence[StoredRow]) -> set[int]:
        """Delete records, subtract them from the saved statistics, and return the names whose links changed."""
        if not removed:
            return set()
        features = [Features.unpack(stored.features) for stored in removed]
        bodies = [
            (each.terms.tolist() if stored.kind in SEARCHED else [], facets_of(json.loads(stored.data)))
            for stored, each in zip(removed, features, strict=True)
        ]
        saved = statements.statistics(row.id)
        if saved is not None:
            statistics = Statistics(lambda ids: words_of(statements, row.id, ids))
            statistics.load(saved)
            counted = [
                FeatureRow(each.id, each.kind, each.features, each.vector)
                for each in removed
                if each.id <= statistics.saved
            ]
            if counted:
                statistics.count_records(counted, -1)
                statements.save_statistics(row.id, statistics.snapshot())
        statements.delete(row.id, removed, bodies)
        return statements.remove_edges(row.id, [each.id for each in removed if each.kind == "relationship"])


def rebuild(database: Database) -> None:
    """Rebuild all derived data of all tenants from the records."""
    with database.transaction() as statements:
        statements.clear_derived()
        for tenant in statements.tenants():
            for _, row in statements.shelves(tenant):
                _rebuild_shelf(statements, row)


def _rebuild_shelf(statements: Statements, row: ShelfRow) -> None:
    row = row._replace(last=max(row.last, statements.greatest_id(row.id)))
    for kind in SEARCHED:
        ids = statements.ids(row.id, kind)
        for start in range(0, len(ids), REBUILD_BATCH):
            rows = statements.stored_rows_by_id(row.id, ids[start : start + REBUILD_BATCH])
            statements.index(row.id, rows, [facets_of(json.loads(each.data)) for each in rows])
    statistics = Statistics(lambda ids: words_of(statements, row.id, ids))
    count_new(statistics, statements, row)
    statements.save_statistics(row.id, statistics.snapshot())
    rebuilt = row._replace(epoch=row.epoch + 1, pending=0, records=sum(statistics.kinds.values()))
    statements.pack(rebuilt)
    statements.touch(rebuilt)


def _changed(shelf: Shelf, records: Sequence[Record]) -> list[tuple[Record, str]]:
    """The records that differ from the stored ones, with their data as JSON."""
    given = [(record, json.dumps(record.data, sort_keys=True)) for record in records]
    stored = {
        (record.kind, record.key): (record.text, json.dumps(record.data, sort_keys=True))
        for kind in {record.kind for record in records}
        for record in shelf.keyed(kind, [each.key for each in records if each.kind == kind])
    }
    return [(record, data) for record, data in given if stored.get((record.kind, record.key)) != (record.text, data)]


def _prepare(shelf: Shelf, changed: Sequence[tuple[Record, str]], embedder: Embedder) -> list[_Prepared]:
    records = [record for record, _ in changed]
    tokens = static_tokens([record.text for record in records])
    features = features_of(
        [record.text for record in records],
        [references_of(record) for record in records],
        [record.key for record in records],
        tokens,
    )
    searched = [i for i, record in enumerate(records) if record.kind in SEARCHED]
    no_vector: Array = np.zeros(0, "<f2")
    vectors, meanings = [no_vector] * len(records), [no_vector] * len(records)
    if searched:
        texts = [records[i].text for i in searched]
        corpus = _corpus(shelf.statistics, [features[i] for i in searched])
        own = [tokens[i] for i in searched]
        embedded = document_vectors(texts, corpus, embedder, own)
        static = embedded if embedder is static_model() else meaning_vectors(texts, corpus, embedder, own)
        for i, vector, meaning in zip(searched, embedded, static, strict=True):
            vectors[i], meanings[i] = vector, meaning
    return [
        _Prepared(record, each, vector, meaning, data)
        for (record, data), each, vector, meaning in zip(changed, features, vectors, meanings, strict=True)
    ]


def _corpus(statistics: Statistics, new: Sequence[Features]) -> CorpusCounts:
    """The corpus statistics for the vectors of new records, with the new records included."""
    corpus = CorpusCounts()
    corpus.size, corpus.length, corpus.tokens = statistics.size, statistics.length, statistics.tokens.copy()
    for features in new:
        corpus.size += 1
        corpus.tokens[features.tokens] += 1
    return corpus


def _with_embedder(row: ShelfRow, name: str, prepared: Sequence[_Prepared]) -> ShelfRow:
    """The shelf row with its embedder. Raises if the shelf was filled with another one."""
    dimensions = next((len(each.vector) for each in prepared if len(each.vector)), 0)
    if not dimensions:
        return row
    if row.embedder and row.embedder != name:
        raise StoreError(wrong_embedder(row.embedder, name))
    if row.dimensions not in (0, dimensions):
        raise wrong_dimensions(row.dimensions, dimensions)
    return row._replace(embedder=name, dimensions=dimensions)


def wrong_embedder(stored: str, given: str) -> str:
    """The message for a memory that was filled with another embedder."""
    return f"the memory was filled with {stored!r}: open it with that embedder, not {given!r}"


def _before(statements: Statements, shelf: int, prepared: Sequence[_Prepared]) -> dict[tuple[Kind, str], StoredRow]:
    """The stored records that will be replaced."""
    return {
        (kind, key): stored
        for kind in {each.record.kind for each in prepared}
        for key, stored in statements.stored_rows(
            shelf, kind, [each.record.key for each in prepared if each.record.kind == kind]
        ).items()
    }


def _slots(
    statements: Statements, shelf: int, prepared: Sequence[_Prepared], before: Mapping[tuple[Kind, str], StoredRow]
) -> list[tuple[str, int]]:
    """The session and position of each record: those of the record it replaces, or the next free position."""
    sessions = [session_of(each.record) for each in prepared]
    last = statements.last_positions(shelf, sorted({session for session in sessions if session}))
    slots: list[tuple[str, int]] = []
    for each, session in zip(prepared, sessions, strict=True):
        replaced = before.get((each.record.kind, each.record.key))
        if not session:
            slots.append(("", 0))
        elif replaced is not None and replaced.session == session:
            slots.append((session, replaced.position))
        else:
            last[session] = last.get(session, -1) + 1
            slots.append((session, last[session]))
    return slots


class _Contexts(NamedTuple):
    new: list[bytes]
    """The context vectors of the new records."""
    changed: list[tuple[int, bytes]]
    """Those of their neighbours, by id."""


def _contexts(
    statements: Statements, shelf: int, prepared: Sequence[_Prepared], slots: Sequence[tuple[str, int]]
) -> _Contexts:
    """The context vectors of the new records and of their neighbours."""
    new: list[bytes] = [b""] * len(prepared)
    changed: list[tuple[int, bytes]] = []
    by_session: dict[str, list[int]] = {}
    for i, (session, _) in enumerate(slots):
        if session and len(prepared[i].meaning):
            by_session.setdefault(session, []).append(i)
    for session, own in by_session.items():
        positions = [slots[i][1] for i in own]
        low, high = min(positions) - REACH, max(positions) + REACH
        neighbours = statements.meanings(shelf, session, low - REACH, high + REACH)
        vectors = [np.frombuffer(vector, "<f2") for *_, vector in neighbours] + [prepared[i].meaning for i in own]
        positions_of = [(session, position) for _, position, _ in neighbours] + [
            (session, position) for position in positions
        ]
        added = context_vectors(np.stack(vectors).astype("float32"), positions_of)
        for (each, position, _), context in zip(neighbours, added, strict=False):
            if low <= position <= high:
                changed.append((each, packed_vector(context)))
        for i, context in zip(own, added[len(neighbours) :], strict=True):
            new[i] = packed_vector(context)
    return _Contexts(new, changed)


def _contexts_of(statements: Statements, shelf: int, session: str, positions: Sequence[int]) -> list[tuple[int, bytes]]:
    """The context vectors of the records around positions that were vacated."""
    low, high = min(positions) - REACH, max(positions) + REACH
    neighbours = statements.meanings(shelf, session, low - REACH, high + REACH)
    if not neighbours:
        return []
    vectors = np.stack([np.frombuffer(vector, "<f2") for *_, vector in neighbours]).astype("float32")
    added = context_vectors(vectors, [(session, position) for _, position, _ in neighbours])
    return [
        (each, packed_vector(context))
        for (each, position, _), context in zip(neighbours, added, strict=True)
        if low <= position <= high
    ]


def _entry(prepared: _Prepared, slot: tuple[str, int], context: bytes) -> Entry:
    record, features = prepared.record, prepared.features
    vector, meaning = packed_vector(prepared.vector), packed_vector(prepared.meaning)
    searched = record.kind in SEARCHED
    return Entry(
        kind=record.kind,
        key=record.key,
        session=slot[0],
        position=slot[1],
        created=created_of(record),
        agent=agent_of(record),
        own=features.own if searched else 0,
        alias=features.alias,
        features=features.pack(),
        vector=vector,
        meaning=b"" if meaning == vector else meaning,
        context=b"" if context in (vector, meaning) else context,
        text=record.text,
        data=prepared.data,
        terms=tuple(features.terms.tolist()) if searched else (),
        facets=tuple(facets_of(record.data)),
    )


def _link(statements: Statements, shelf: int, written: Sequence[tuple[int, _Prepared]], unlinked: set[int]) -> None:
    """Store the links of new relationships, and update the links of all records with these names."""
    edges = [(*_ends(each.record), i) for i, each in written if each.record.kind == "relationship"]
    both = [edge for one, other, i in edges if one != other for edge in ((one, other, i), (other, one, i))]
    statements.add_edges(shelf, both)
    names = {name for _, each in written for name in (each.features.own, each.features.alias)} - {0}
    linked = statements.links_of(shelf, sorted({*names, *(one for one, _, _ in both)}))
    touched = sorted({*linked, *unlinked})
    if not touched:
        return
    records = statements.record_names(shelf, touched)
    links = statements.links_of(shelf, sorted({name for _, own, alias in records for name in (own, alias)} - {0}))
    statements.set_links(
        shelf, [(each, _packed_names([*links.get(own, ()), *links.get(alias, ())])) for each, own, alias in records]
    )


def _ends(record: Record) -> tuple[int, int]:
    return number(canonical(str(record.data.get("source")))), number(canonical(str(record.data.get("target"))))


def _packed_names(names: Sequence[int]) -> bytes:
    return np.array(list(dict.fromkeys(names)), dtype="<u4").tobytes()


def _with_saved_statistics(statements: Statements, row: ShelfRow) -> ShelfRow:
    """Save the statistics and update the vector index, if enough records were written since."""
    if row.pending < SAVED_EVERY:
        return row
    statistics = Statistics(lambda ids: words_of(statements, row.id, ids))
    if (saved := statements.statistics(row.id)) is not None:
        statistics.load(saved)
    count_new(statistics, statements, row)
    statements.save_statistics(row.id, statistics.snapshot())
    statements.pack(row)
    return row._replace(pending=0)

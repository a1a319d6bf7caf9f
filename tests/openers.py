"""How the stores of the tests are opened, in this process or in another."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import chromadb
import psycopg
from chromadb.config import Settings
from psycopg.rows import dict_row

from langgraph_scrum_master import ChromaMemory, PostgresMemory, StoreMemory
from langgraph_scrum_master.protocols import MemoryStore
from langgraph_scrum_master.rank.embedders import embedder_for


def in_folder(folder: Path, namespace: str) -> MemoryStore:
    return ChromaMemory(folder, namespace=namespace)


def embedded(texts: list[str]) -> list[list[float]]:
    return [[float(number) for number in vector] for vector in embedder_for("static").embed_documents(texts)]


INDEX: Any = {"dims": len(embedded(["x"])[0]), "embed": embedded, "fields": ["content"]}


def in_server(port: int, own: int, namespace: str) -> MemoryStore:
    client = chromadb.HttpClient("127.0.0.1", port, settings=Settings(anonymized_telemetry=False))
    return ChromaMemory(client=client, namespace=f"{own} {namespace}")


def in_postgres(uri: str, own: int, namespace: str) -> MemoryStore:
    return PostgresMemory(uri, namespace=f"{own} {namespace}")


_databases = count()


def new_database(uri: str) -> str:
    """The URL of a new database on the server with this URL."""
    name = f"new{next(_databases)}"
    with psycopg.connect(uri, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return uri.replace("/postgres?", f"/{name}?")


# So that the index looks on until it has found enough of the namespace that is asked for, and widely enough.
SCAN = "&options=-c%20hnsw.iterative_scan%3Drelaxed_order%20-c%20hnsw.ef_search%3D400"


def in_postgres_store(uri: str, own: int, namespace: str) -> MemoryStore:
    from langgraph.store.postgres import PostgresStore
    from psycopg_pool import ConnectionPool

    kwargs = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    store = PostgresStore(ConnectionPool(uri + SCAN, min_size=1, max_size=2, kwargs=kwargs), index=INDEX)
    return StoreMemory(store, namespace=f"{own} {namespace}")

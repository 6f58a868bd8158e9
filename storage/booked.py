"""Artifacts that are on the books before they are written, in whatever store: so no file is ever unknown.

With `storage.references` this keeps a sweep, in this process or on another machine, from removing a file that
somebody is about to record: an announcement waits for a removal under way, and what is written after it stays.
It knows nothing of who holds what.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from orchestrator.records import ArtifactKey
from storage import references
from storage.artifacts import LocalArtifacts, key_of
from storage.s3 import S3Artifacts
from storage.sql import SqlDatabase

Store: TypeAlias = LocalArtifacts | S3Artifacts


class BookedArtifacts:
    """A store with its books. Implements the port of artifacts; every error is the store's or the database's."""

    def __init__(self, database: SqlDatabase, store: Store) -> None:
        self._database = database
        self.store = store

    def put(self, data: bytes, suffix: str) -> ArtifactKey:
        """Announce, store and return the key. Hold it within `references.ARRIVAL_SECONDS`."""
        with self._database.write() as connection:
            references.expect(connection, [key_of(data, suffix)], self._database.now(connection))
        return self.store.put(data, suffix)

    def read(self, key: ArtifactKey) -> bytes:
        """The content. Raises ArtifactMissing, ArtifactDamaged."""
        return self.store.read(key)

    def path(self, key: ArtifactKey) -> Path:
        """A local file with the content. Raises ArtifactMissing, ArtifactDamaged."""
        return self.store.path(key)

    def check(self) -> None:
        """Raise BackendUnavailable or BackendMisconfigured if the store cannot be used now."""
        self.store.check()

"""Faults made real, as in the storage's tests."""

from __future__ import annotations

from tests.storage.conftest import small_file_system

__all__ = ["small_file_system"]

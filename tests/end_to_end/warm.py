"""Imported by the fork server alone: everything that a run imports or works out about its picture, done once."""

from tests.end_to_end import children
from tests.end_to_end.jobs import small_job
from worlds.catalog import WORLDS, load

WORLDS_LOADED = [load(name) for name in WORLDS]
JOB = small_job()
COMMANDS = children.IMPORTED

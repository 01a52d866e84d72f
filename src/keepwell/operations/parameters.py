"""The parameters that operations share: each name, bound and description once."""

from typing import Final

from keepwell.model.category import ABSENT, CategoryKind
from keepwell.model.journal import LARGEST_DAYS, LARGEST_ENTRIES
from keepwell.model.lesson import Verdict
from keepwell.model.query import Visibility
from keepwell.model.scope import ScopeKind
from keepwell.model.text import (
    DESCRIPTION_BYTES,
    EVIDENCE_MAX,
    LARGEST_SAFE_INTEGER,
    LESSON_BYTES,
    OPERATION_ID_BYTES,
    QUERY_BYTES,
    REASON_BYTES,
    SOURCE_URI_BYTES,
)
from keepwell.operations.table import Choice, Flag, Integer, Listed, Name, Object, Parameter, Records, Text

PATH_BYTES: Final = 4_096

ID: Final = Parameter("id", Integer(1, LARGEST_SAFE_INTEGER), "The lesson's id.")
MEMORY_ID: Final = Parameter("memory_id", ID.kind, "The lesson that you used.")
TEXT: Final = Parameter(
    "text",
    Text(LESSON_BYTES),
    "One self-contained lesson; no secrets.",
)
EVIDENCE: Final = Parameter(
    "evidence",
    Records(
        (
            Parameter(
                "description",
                Text(DESCRIPTION_BYTES),
                "What was seen or done.",
            ),
            Parameter(
                "source_uri",
                Text(SOURCE_URI_BYTES),
                "File, link or commit.",
                required=False,
            ),
        ),
        minimum=1,
        maximum=EVIDENCE_MAX,
    ),
    "Why it is believed.",
)
REASON: Final = Parameter("reason", Text(REASON_BYTES), "For the history.", required=False)
OPERATION_ID: Final = Parameter(
    "operation_id",
    Text(OPERATION_ID_BYTES),
    "Unique per call; a repeat returns the first result.",
    required=False,
)
QUERY: Final = Parameter("query", Text(QUERY_BYTES), "Words or a whole question; no operators.")
LIMIT: Final = Parameter("limit", Integer(1, 50), "How many at most.", required=False, default=5)
VISIBLE_SCOPE: Final = Parameter(
    "scope",
    Choice(tuple(Visibility)),
    "Which lessons; categories only with all.",
    required=False,
    default=Visibility.ALL.value,
)
TARGET_SCOPE: Final = Parameter(
    "scope",
    Choice(tuple(ScopeKind)),
    "Where it holds.",
    required=False,
    default=ScopeKind.PROJECT.value,
)
VERDICT: Final = Parameter("verdict", Choice(tuple(Verdict)), "What it turned out to be.")

ADD: Final = (TEXT, EVIDENCE, TARGET_SCOPE, REASON, OPERATION_ID)

CHECK: Final = Parameter(
    "check", Flag(), "Read everything and compare it; takes a while.", required=False, default=False
)
OLD_PATH: Final = Parameter("old_path", Text(PATH_BYTES), "The path that the project had before it moved.")
OUTPUT: Final = Parameter("output", Text(PATH_BYTES), "The file to write; it must not exist yet.", by_place=False)
EXPORT: Final = Parameter("output", Text(PATH_BYTES), "The file to write; it must not exist yet.")
SOURCE: Final = Parameter(
    "source",
    Text(PATH_BYTES),
    "An export of keepwell; a JSON Lines file with the arguments of memory_add on each line; or mcp-memory or "
    "mcp-memory-rs, followed by the path of that store.",
)
SOURCE_PATH: Final = Parameter(
    "path",
    Text(PATH_BYTES),
    "The database or folder of the other program.",
    required=False,
    by_place=True,
)
SNAPSHOT_TO: Final = Parameter("dir", Text(PATH_BYTES), "The folder to make; with keep, the folder of snapshots.")
WITH_BACKUPS: Final = Parameter(
    "with_backups", Flag(), "Also the backups of categories.", required=False, default=False
)
KEEP: Final = Parameter(
    "keep", Integer(1, 100_000), "Collect snapshots in dir and leave only so many of them.", required=False
)
EVERY: Final = Parameter("every", Text(32), "Go on with a snapshot each 30m, 6h or 1d; needs keep.", required=False)
SNAPSHOT_FROM: Final = Parameter(
    "dir", Text(PATH_BYTES), "The snapshot to put in the store's place.", required=False, by_place=True
)
STOPPED: Final = Parameter(
    "stopped", Flag(), "Your word that every keepwell on this store is stopped.", required=False, default=False
)
FINISH: Final = Parameter("finish", Flag(), "Finish a restore that was interrupted.", required=False, default=False)
UNDO: Final = Parameter("undo", Flag(), "Undo a restore that was interrupted.", required=False, default=False)
WHAT: Final = Parameter("what", Text(PATH_BYTES), "A lesson's id, or a category's name.")
IS_CATEGORY: Final = Parameter(
    "category", Flag(), "It is a category, though its name is a number.", required=False, default=False
)
YES: Final = Parameter("yes", Flag(), "Do it; without this it is only told.", required=False, default=False)
WITH_FORGOTTEN: Final = Parameter(
    "with_forgotten",
    Flag(),
    "Also bring back what was forgotten after the snapshot was made.",
    required=False,
    default=False,
)
PLAN: Final = Parameter("plan", Text(PATH_BYTES), "Write down what would be taken in; change nothing.", required=False)
APPLY: Final = Parameter("apply", Text(PATH_BYTES), "Take in what such a file says and is still so.", required=False)
DRY_RUN: Final = Parameter("dry_run", Flag(), "Say what would happen; change nothing.", required=False, default=False)

CATEGORY: Final = Parameter("category", Name(), "Its name.")
DATA: Final = Parameter("data", Object(), "The document, or keys to set.")
ENTRY: Final = Parameter("data", Object(), "What happened.")
MERGE: Final = Parameter("merge", Flag(), "Set only the keys of data; null removes one.", required=False, default=False)
EXPECTED_HASH: Final = Parameter(
    "expected_hash",
    Text(64),
    f'The hash that you read, or "{ABSENT}" for a new one.',
    required=False,
)
FIELDS: Final = Parameter("fields", Text(QUERY_BYTES), "Top-level keys, by commas.", required=False)
ENTRIES: Final = Parameter(
    "entries", Integer(1, LARGEST_ENTRIES), "Only so many newest entries of a log.", required=False
)
MAX_ENTRIES: Final = Parameter(
    "max_entries",
    Integer(1, LARGEST_ENTRIES),
    "Keep so many; at first 200.",
    required=False,
)
MAX_AGE_DAYS: Final = Parameter("max_age_days", Integer(1, LARGEST_DAYS), "Keep them so long.", required=False)
AFTER: Final = Parameter("after", Name(), "Go on after this name.", required=False)
LIST_LIMIT: Final = Parameter("limit", Integer(1, 1_000), "How many at most.", required=False, default=100)
VERSIONS_LIMIT: Final = Parameter("limit", Integer(1, 1_000), "How many at most.", required=False, default=20)
VERSION: Final = Parameter("version", Integer(1, LARGEST_SAFE_INTEGER), "Read this one.", required=False)
AGAINST: Final = Parameter(
    "against",
    Integer(1, LARGEST_SAFE_INTEGER),
    "Compare version with this one.",
    required=False,
)
BEFORE: Final = Parameter("before", Integer(1, LARGEST_SAFE_INTEGER), "Only older ones.", required=False)
TO_VERSION: Final = Parameter("version", VERSION.kind, "The version whose document to bring back.")
SINCE_HASH: Final = Parameter("since_hash", Text(64), "The hash that you know.")
CATEGORIES: Final = Parameter("categories", Listed(Name(), 100), "Most important first.")
BUDGET: Final = Parameter(
    "budget_tokens",
    Integer(100, 100_000),
    "Bound of the answer.",
    required=False,
    default=4_000,
)
LESSONS: Final = Parameter("lessons", Integer(0, 100), "Add so many newest lessons.", required=False, default=0)
KINDS: Final = Parameter(
    "kinds",
    Listed(Choice(("lesson", CategoryKind.MEMORY.value, CategoryKind.LOG.value)), 3),
    "memory: category documents; log: their entries.",
    required=False,
)
IN_CATEGORY: Final = Parameter("category", Name(), "Only this one.", required=False)
UPDATED_AFTER: Final = Parameter("updated_after", Text(64), "Date or RFC 3339 time.", required=False)
UPDATED_BEFORE: Final = Parameter("updated_before", Text(64), "The same; a date includes its day.", required=False)
ACTOR: Final = Parameter("actor", Text(256), "Device or client.", required=False)
KEEP_VERSIONS: Final = Parameter(
    "keep_versions", Integer(1, 100_000), "How many versions to keep of each; else the setting.", required=False
)
FIX: Final = Parameter("fix", Flag(), "Repair what is safe to repair.", required=False, default=False)

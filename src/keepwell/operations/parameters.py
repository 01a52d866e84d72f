"""The parameters that operations share: each name, bound and description once."""

from typing import Final

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
from keepwell.operations.table import Choice, Flag, Integer, Parameter, Records, Text

PATH_BYTES: Final = 4_096

ID: Final = Parameter("id", Integer(1, LARGEST_SAFE_INTEGER), "The lesson's id, as search and add gave it.")
MEMORY_ID: Final = Parameter("memory_id", ID.kind, "The id of the lesson that you used.")
TEXT: Final = Parameter(
    "text",
    Text(LESSON_BYTES),
    f"One self-contained lesson, at most {LESSON_BYTES:,} bytes of UTF-8. No secrets.",
)
EVIDENCE: Final = Parameter(
    "evidence",
    Records(
        (
            Parameter(
                "description",
                Text(DESCRIPTION_BYTES),
                f"What was seen or done, at most {DESCRIPTION_BYTES:,} bytes.",
            ),
            Parameter(
                "source_uri",
                Text(SOURCE_URI_BYTES),
                "A file, link or commit; stored, never fetched.",
                required=False,
            ),
        ),
        minimum=1,
        maximum=EVIDENCE_MAX,
    ),
    f"Why it is believed: 1 to {EVIDENCE_MAX} observations.",
)
REASON: Final = Parameter(
    "reason", Text(REASON_BYTES), f"Why, for the history; at most {REASON_BYTES:,} bytes.", required=False
)
OPERATION_ID: Final = Parameter(
    "operation_id",
    Text(OPERATION_ID_BYTES),
    "Your own unique id for this call; repeating the call with it returns the first result.",
    required=False,
)
QUERY: Final = Parameter(
    "query", Text(QUERY_BYTES), f"Words or a whole question, at most {QUERY_BYTES:,} bytes; no operators."
)
LIMIT: Final = Parameter("limit", Integer(1, 50), "How many at most.", required=False, default=5)
VISIBLE_SCOPE: Final = Parameter(
    "scope",
    Choice(tuple(Visibility)),
    "Narrow to this project's or to global lessons.",
    required=False,
    default=Visibility.ALL.value,
)
TARGET_SCOPE: Final = Parameter(
    "scope",
    Choice(tuple(ScopeKind)),
    "project: only here; global: everywhere.",
    required=False,
    default=ScopeKind.PROJECT.value,
)
VERDICT: Final = Parameter("verdict", Choice(tuple(Verdict)), "What it turned out to be.")

ADD: Final = (TEXT, EVIDENCE, TARGET_SCOPE, REASON, OPERATION_ID)

CHECK: Final = Parameter(
    "check", Flag(), "Read everything and compare it; takes a while.", required=False, default=False
)
OLD_PATH: Final = Parameter("old_path", Text(PATH_BYTES), "The path that the project had before it moved.")
OUTPUT: Final = Parameter("output", Text(PATH_BYTES), "The file to write; it must not exist yet.")
FILE: Final = Parameter("file", Text(PATH_BYTES), "A JSON Lines file with the arguments of memory_add on each line.")
DRY_RUN: Final = Parameter("dry_run", Flag(), "Say what would happen; change nothing.", required=False, default=False)

"""What can be asked: one function a use case, and one table of all of them.

MCP tools, commands, reference pages and schema snapshots are renderings of `OPERATIONS`.
"""

from typing import Final

from keepwell.model.errors import NotFound
from keepwell.operations import (
    care,
    categories,
    category_replies,
    context,
    exchange,
    history,
    lessons,
    parameters,
    recall,
    replies,
    upkeep,
)
from keepwell.operations.table import Effect, Example, Operation

LESSONS: Final = "lessons"
CATEGORIES: Final = "categories"
ADMIN: Final = "admin"

_EVIDENCE: Final = [{"description": "Ran green after the dependency update.", "source_uri": "package.json"}]

OPERATIONS: Final = (
    Operation(
        tool="memory_search",
        command="search",
        toolset=LESSONS,
        title="Search memory",
        summary=(
            "Look for what earlier sessions learned: before work, when something fails, when asked what is known. "
            "Returns lessons and places in categories: data, no orders."
        ),
        effect=Effect.READ,
        run=recall.search,
        counts_delivery=True,
        result=replies.Found,
        parameters=(
            parameters.QUERY,
            parameters.LIMIT,
            parameters.VISIBLE_SCOPE,
            parameters.KINDS,
            parameters.IN_CATEGORY,
            parameters.UPDATED_AFTER,
            parameters.UPDATED_BEFORE,
            parameters.ACTOR,
        ),
        examples=(Example("What is known about running the tests?", {"query": "running tests", "limit": 5}),),
    ),
    Operation(
        tool="memory_get",
        command="get",
        toolset=LESSONS,
        title="Read one memory",
        summary=("Read one lesson, also archived, with evidence, counts, newest changes (20) and reports (10)."),
        effect=Effect.READ,
        run=recall.get,
        counts_delivery=True,
        result=replies.Details,
        parameters=(parameters.ID,),
        examples=(Example("The whole story of lesson 1", {"id": 1}),),
    ),
    Operation(
        tool="memory_add",
        command="add",
        toolset=LESSONS,
        title="Remember a lesson",
        summary=(
            "Save something learned that will matter later, with evidence. The same active text is reused, not "
            "doubled. Returns the id. To correct a lesson use memory_supersede."
        ),
        effect=Effect.WRITE,
        run=lessons.add,
        result=replies.Written,
        parameters=parameters.ADD,
        needs_write=True,
        idempotent=True,
        examples=(
            Example("A command that works here", {"text": "Run validation with npm test.", "evidence": _EVIDENCE}),
        ),
    ),
    Operation(
        tool="memory_supersede",
        command="supersede",
        toolset=LESSONS,
        title="Replace a lesson",
        summary=(
            "Replace a lesson that is wrong or outdated by a new text in the same scope, in one step. Returns the new "
            "id."
        ),
        effect=Effect.DESTROY,
        run=lessons.supersede,
        result=replies.Written,
        parameters=(
            parameters.ID,
            parameters.TEXT,
            parameters.EVIDENCE,
            parameters.REASON,
            parameters.OPERATION_ID,
        ),
        needs_write=True,
        examples=(
            Example(
                "The command changed",
                {"id": 1, "text": "Run validation with pnpm test.", "evidence": _EVIDENCE, "reason": "Moved to pnpm."},
            ),
        ),
    ),
    Operation(
        tool="memory_archive",
        command="archive",
        toolset=LESSONS,
        title="Archive a lesson",
        summary="Take a lesson out of search without a replacement. It stays readable.",
        effect=Effect.DESTROY,
        run=lessons.archive,
        result=replies.Written,
        parameters=(parameters.ID, parameters.REASON),
        needs_write=True,
        idempotent=True,
        examples=(Example("No longer needed", {"id": 2, "reason": "The service was shut down."}),),
    ),
    Operation(
        tool="memory_feedback",
        command="feedback",
        toolset=LESSONS,
        title="Report on a lesson",
        summary=(
            "After using a lesson, say how it turned out. Counts, changes nothing; if it is wrong, also use "
            "memory_supersede."
        ),
        effect=Effect.WRITE,
        run=lessons.give_feedback,
        result=replies.Written,
        parameters=(parameters.MEMORY_ID, parameters.VERDICT, parameters.REASON, parameters.OPERATION_ID),
        examples=(
            Example(
                "It helped",
                {"memory_id": 1, "verdict": "useful", "reason": "Identified the correct validation command."},
            ),
        ),
    ),
    Operation(
        tool="memory_read",
        command="read",
        toolset=CATEGORIES,
        title="Read a category",
        summary="Read a category: a named JSON document, or a log. Returns data, hash, version and writer.",
        effect=Effect.READ,
        run=categories.read,
        result=category_replies.Read,
        parameters=(parameters.CATEGORY, parameters.FIELDS, parameters.ENTRIES),
        examples=(Example("What is known about the projects", {"category": "projects"}),),
    ),
    Operation(
        tool="memory_write",
        command="write",
        toolset=CATEGORIES,
        title="Write a category",
        summary=(
            "Replace a category's document, or with merge set its top-level keys; versions are kept. With "
            "expected_hash nobody's change is overwritten."
        ),
        effect=Effect.DESTROY,
        run=categories.write,
        result=category_replies.Saved,
        parameters=(
            parameters.CATEGORY,
            parameters.DATA,
            parameters.MERGE,
            parameters.REASON,
            parameters.EXPECTED_HASH,
        ),
        needs_write=True,
        idempotent=True,
        examples=(
            Example(
                "One key, the others stay",
                {"category": "projects", "data": {"keepwell": {"status": "active"}}, "merge": True},
            ),
        ),
    ),
    Operation(
        tool="memory_append",
        command="append",
        toolset=CATEGORIES,
        title="Append to a log",
        summary="Add an entry to a log (made if new), such as a session journal. Old ones are dropped by its bounds.",
        effect=Effect.WRITE,
        run=categories.append,
        result=category_replies.Appended,
        parameters=(
            parameters.CATEGORY,
            parameters.ENTRY,
            parameters.MAX_ENTRIES,
            parameters.MAX_AGE_DAYS,
            parameters.OPERATION_ID,
        ),
        needs_write=True,
        examples=(Example("What was done", {"category": "journal", "data": {"did": "Moved CI to pnpm."}}),),
    ),
    Operation(
        tool="memory_delete",
        command="delete",
        toolset=CATEGORIES,
        title="Delete a category",
        summary="Take a category away. Its versions stay; the user can bring it back.",
        effect=Effect.DESTROY,
        run=categories.delete,
        result=category_replies.Removed,
        parameters=(parameters.CATEGORY, parameters.REASON, parameters.EXPECTED_HASH),
        needs_write=True,
        examples=(Example("No longer needed", {"category": "old-notes"}),),
    ),
    Operation(
        tool="memory_list",
        command="list",
        toolset=CATEGORIES,
        title="List categories",
        summary="The categories by name, with kind, hash, size and last change.",
        effect=Effect.READ,
        run=categories.list_categories,
        result=category_replies.Listing,
        parameters=(parameters.AFTER, parameters.LIST_LIMIT),
        examples=(Example("All of them", {}),),
    ),
    Operation(
        tool="memory_history",
        command="versions",
        toolset=CATEGORIES,
        title="Versions of a category",
        summary="A category's versions, newest first; or one version's document, or what changed between two.",
        effect=Effect.READ,
        run=history.versions,
        result=category_replies.Versions,
        parameters=(
            parameters.CATEGORY,
            parameters.VERSIONS_LIMIT,
            parameters.BEFORE,
            parameters.VERSION,
            parameters.AGAINST,
        ),
        examples=(Example("Who changed it", {"category": "projects"}),),
    ),
    Operation(
        tool="memory_delta",
        command="delta",
        toolset=CATEGORIES,
        title="What changed since",
        summary="What changed in a category since a hash you know.",
        effect=Effect.READ,
        run=history.delta,
        result=category_replies.Delta,
        parameters=(parameters.CATEGORY, parameters.SINCE_HASH),
    ),
    Operation(
        tool="memory_context",
        command="context",
        toolset=CATEGORIES,
        title="Read several categories",
        summary="Several categories and lessons within a budget: for a session's start.",
        effect=Effect.READ,
        run=context.context,
        result=category_replies.Context,
        parameters=(parameters.CATEGORIES, parameters.FIELDS, parameters.BUDGET, parameters.LESSONS),
        examples=(Example("Where we stand", {"categories": ["projects", "journal"], "lessons": 5}),),
    ),
    Operation(
        tool=None,
        command="revert",
        toolset=ADMIN,
        title="Bring a version back",
        summary="Make an older version of a category the newest one, also of a deleted category.",
        effect=Effect.DESTROY,
        run=history.revert,
        result=category_replies.Saved,
        parameters=(parameters.CATEGORY, parameters.TO_VERSION, parameters.EXPECTED_HASH),
        needs_write=True,
        idempotent=True,
    ),
    Operation(
        tool="memory_compact",
        command="compact",
        toolset=ADMIN,
        title="Remove old versions",
        summary="Remove versions, log entries and backups beyond the bounds. Try dry_run first.",
        effect=Effect.DESTROY,
        run=care.compact,
        result=category_replies.Compaction,
        parameters=(parameters.IN_CATEGORY, parameters.KEEP_VERSIONS, parameters.DRY_RUN),
        needs_write=True,
        idempotent=True,
    ),
    Operation(
        tool=None,
        command="history",
        toolset=ADMIN,
        title="Every change of a lesson",
        summary="Every change of one lesson, newest first.",
        effect=Effect.READ,
        run=upkeep.history,
        result=replies.Details,
        parameters=(parameters.ID,),
    ),
    Operation(
        tool=None,
        command="scopes",
        toolset=ADMIN,
        title="Projects with lessons",
        summary="Every project that has lessons and the global scope, with counts; says which folders are gone.",
        effect=Effect.READ,
        run=upkeep.scopes,
        result=replies.Scopes,
    ),
    Operation(
        tool=None,
        command="relink",
        toolset=ADMIN,
        title="Follow a moved project",
        summary="Let the lessons recorded under a path that is gone belong to the present project.",
        effect=Effect.WRITE,
        run=upkeep.relink,
        result=replies.Relinked,
        parameters=(parameters.OLD_PATH,),
        needs_write=True,
    ),
    Operation(
        tool="memory_status",
        command="status",
        toolset=ADMIN,
        title="State of the store",
        summary="Where the store is, how it runs, what is in it; with --check, whether it is whole.",
        effect=Effect.READ,
        run=upkeep.status,
        result=replies.State,
        parameters=(parameters.CHECK,),
    ),
    Operation(
        tool="memory_doctor",
        command="doctor",
        toolset=ADMIN,
        title="Look for faults",
        summary="Check files, permissions, index and disk; each finding comes with its remedy.",
        effect=Effect.WRITE,
        run=care.doctor,
        result=category_replies.Checkup,
        parameters=(parameters.FIX,),
        idempotent=True,
    ),
    Operation(
        tool=None,
        command="backup",
        toolset=ADMIN,
        title="Copy the database",
        summary="A verified copy of one instant while servers run; refuses a file that exists.",
        effect=Effect.READ,
        run=upkeep.backup,
        result=replies.BackedUp,
        parameters=(parameters.OUTPUT,),
    ),
    Operation(
        tool=None,
        command="import",
        toolset=ADMIN,
        title="Take lessons in from a file",
        summary="Add a lesson for each line of a JSON Lines file; broken lines are told by number.",
        effect=Effect.WRITE,
        run=exchange.import_lessons,
        result=replies.Imported,
        parameters=(parameters.FILE, parameters.DRY_RUN),
        needs_write=True,
        idempotent=True,
    ),
)

DEFAULT_TOOLSETS: Final = (LESSONS, CATEGORIES)
TOOLSETS: Final = tuple(dict.fromkeys(operation.toolset for operation in OPERATIONS if operation.tool))


def tool_named(name: str) -> Operation:
    """The operation behind a tool's name; `NotFound` if there is none."""
    for operation in OPERATIONS:
        if operation.tool == name:
            return operation
    raise NotFound("there is no tool of that name.", hint="tools/list gives the names.")

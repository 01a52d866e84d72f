"""The gate: every parameter of every operation, and who may do what."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.conftest import ALL, PROJECT_B, MakeLibrary

from keepwell.model.errors import Denied, Invalid, KeepwellError, NotFound
from keepwell.model.text import LARGEST_SAFE_INTEGER
from keepwell.operations import OPERATIONS, tool_named
from keepwell.operations.library import Permissions
from keepwell.operations.table import (
    Choice,
    Flag,
    Integer,
    Listed,
    Name,
    Object,
    Operation,
    Parameter,
    Records,
    Text,
    bind,
)
from keepwell.surfaces.schema import input_schema

EVIDENCE = [{"description": "seen"}]
LESSON: dict[str, Any] = {"text": "zebra", "evidence": EVIDENCE}


def good(parameter: Parameter) -> Any:
    match parameter.kind:
        case Text():
            return "x"
        case Integer():
            return parameter.kind.minimum
        case Choice():
            return parameter.kind.values[0]
        case Flag():
            return True
        case Records():
            return [{field.name: good(field) for field in parameter.kind.fields}]
        case Name():
            return "notes"
        case Object():
            return {"key": "value"}
        case Listed():
            return [good(Parameter("item", parameter.kind.item, ""))]


def bad(parameter: Parameter) -> list[Any]:
    others: dict[type, Any] = {str: "x", int: 1, bool: True, list: [], dict: {}, type(None): None, float: 1.5}
    match parameter.kind:
        case Name():
            del others[str]
            return [*others.values(), "", " x", "x.", ".x", "a/b", "a\\b", "a..b", "a\0b", "a\nb", "NUL", "n" * 129]
        case Object():
            del others[dict]
            return list(others.values())
        case Listed():
            item = Parameter("item", parameter.kind.item, "")
            too_many = [f"name {number}" for number in range(parameter.kind.maximum + 1)]
            return [*others.values(), too_many, *([value] for value in bad(item))]
        case Text():
            del others[str]
            return [*others.values(), "", "  ", "x" * (parameter.kind.max_bytes + 1), "é" * parameter.kind.max_bytes]
        case Integer():
            del others[int]
            bounds = [parameter.kind.minimum - 1, parameter.kind.maximum + 1, "1", -1, 2**53, 1e300]
            return [*others.values(), *bounds]
        case Choice():
            return [*others.values(), parameter.kind.values[0].upper()]
        case Flag():
            del others[bool]
            return [*others.values(), "true", 0]
        case Records():
            count = parameter.kind.maximum + 1
            items = [good(parameter)[0] for _ in range(count)]
            return [*others.values(), items, ["x"], [{}], [{**items[0], "extra": 1}], '[{"description": "x"}]']


CASES = [
    pytest.param(operation, parameter, value, id=f"{operation.name}-{parameter.name}-{str(value)[:20]}")
    for operation in OPERATIONS
    for parameter in operation.parameters
    for value in bad(parameter)
]


def complete(operation: Operation) -> dict[str, Any]:
    return {parameter.name: good(parameter) for parameter in operation.parameters}


@pytest.mark.parametrize(("operation", "parameter", "value"), CASES)
def test_a_bad_value_is_refused_on_one_line_that_names_the_parameter(
    operation: Operation, parameter: Parameter, value: Any
) -> None:
    with pytest.raises(Invalid) as raised:
        bind(operation.parameters, complete(operation) | {parameter.name: value})
    assert parameter.name in raised.value.sentence
    assert "\n" not in raised.value.line
    assert len(raised.value.line) < 400


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_good_values_pass_and_optional_ones_take_their_default(operation: Operation) -> None:
    assert bind(operation.parameters, complete(operation)) == complete(operation)
    required = {parameter.name: good(parameter) for parameter in operation.parameters if parameter.required}
    bound = bind(operation.parameters, required)
    assert bound == {p.name: required.get(p.name, p.default) for p in operation.parameters}


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_an_unknown_property_is_refused_with_the_known_ones(operation: Operation) -> None:
    with pytest.raises(Invalid, match="'project' is not a parameter"):
        bind(operation.parameters, complete(operation) | {"project": "/elsewhere"})


@pytest.mark.parametrize(
    ("operation", "name"),
    [(operation, p.name) for operation in OPERATIONS for p in operation.parameters if p.required],
)
def test_a_missing_argument_is_named(operation: Operation, name: str) -> None:
    arguments = complete(operation)
    del arguments[name]
    with pytest.raises(Invalid, match=f"^{name} is missing"):
        bind(operation.parameters, arguments)


TEXTS = [
    (operation, parameter)
    for operation in OPERATIONS
    for parameter in operation.parameters
    if isinstance(parameter.kind, Text)
]


@pytest.mark.parametrize(("operation", "parameter"), TEXTS)
def test_text_fills_its_limit_in_bytes_and_not_one_more(operation: Operation, parameter: Parameter) -> None:
    assert isinstance(parameter.kind, Text)
    limit = parameter.kind.max_bytes
    full = "é" * (limit // 2) + "x" * (limit % 2)
    assert bind(operation.parameters, complete(operation) | {parameter.name: full})[parameter.name] == full
    with pytest.raises(Invalid, match=f"{parameter.name} is {limit + 1:,} bytes.*limit is {limit:,} bytes"):
        bind(operation.parameters, complete(operation) | {parameter.name: full + "x"})


@pytest.mark.parametrize("text", ["a\0b", "a\x1bb", "a\x07", "\ud83d half", "half \udc00"])
@pytest.mark.parametrize(("operation", "parameter"), TEXTS[:4])
def test_text_that_cannot_be_kept_is_refused_with_the_place(
    operation: Operation, parameter: Parameter, text: str
) -> None:
    with pytest.raises(Invalid, match=rf"{parameter.name} holds .*U\+[0-9A-F]{{4}}.* at character \d"):
        bind(operation.parameters, complete(operation) | {parameter.name: text})


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["description", "x"]), inner, max_size=2)
    ),
    max_leaves=6,
)
KEPT = st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"])


BEYOND_THE_SCHEMA = (
    "empty",
    "holds",
    "must be a name of",
    "begins or ends",
    "reserves",
    "takes 1 to",
    "bytes in UTF-8",
    str(2**53 - 1),
)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
@given(data=st.data())
def test_the_gate_and_the_published_schema_agree(operation: Operation, data: st.DataObject) -> None:
    """The schema leaves out what is blank, a control character, an empty list or a number that no store reaches."""
    names = [parameter.name for parameter in operation.parameters]
    arguments = complete(operation)
    if names:
        name = data.draw(st.sampled_from(names))
        arguments[name] = data.draw(values | st.text(KEPT, min_size=1, max_size=9))
    schema = jsonschema.Draft202012Validator(input_schema(operation))
    try:
        bind(operation.parameters, arguments)
    except Invalid as error:
        beyond_the_schema = any(words in error.sentence for words in BEYOND_THE_SCHEMA)
        assert beyond_the_schema or not schema.is_valid(arguments)
    else:
        assert schema.is_valid(arguments)


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert bind(tool_named("memory_get").parameters, {"id": 3.0}) == {"id": 3}


@pytest.mark.parametrize("number", [LARGEST_SAFE_INTEGER])
def test_the_largest_safe_integer_is_an_id(library: MakeLibrary, number: int) -> None:
    with pytest.raises(NotFound):
        library().perform(tool_named("memory_get"), {"id": number})


WRITES: dict[str, dict[str, Any]] = {
    "memory_add": LESSON,
    "memory_supersede": {"id": 1, **LESSON},
    "memory_archive": {"id": 1},
}


@pytest.mark.parametrize("tool", WRITES)
def test_without_write_permission_nothing_changes_and_the_flag_is_named(library: MakeLibrary, tool: str) -> None:
    library().perform(tool_named("memory_add"), LESSON)
    with pytest.raises(Denied) as raised:
        library(permissions=Permissions()).perform(tool_named(tool), WRITES[tool])
    assert "--allow-write" in raised.value.hint
    with library().store.reading() as reader:
        assert reader.counts().changes == 1


def test_reports_and_deliveries_are_written_without_write_permission(library: MakeLibrary) -> None:
    library().perform(tool_named("memory_add"), LESSON)
    reader = library(permissions=Permissions())
    reader.perform(tool_named("memory_feedback"), {"memory_id": 1, "verdict": "useful"})
    reader.perform(tool_named("memory_search"), {"query": "zebra"})
    counts = reader.perform(tool_named("memory_get"), {"id": 1}).memory.statistics
    assert (counts.useful_count, counts.retrieval_count) == (1, 1)


@pytest.mark.parametrize("tool", WRITES)
def test_global_lessons_need_their_own_permission(library: MakeLibrary, tool: str) -> None:
    library().perform(tool_named("memory_add"), LESSON | {"scope": "global"})
    arguments = WRITES[tool] | ({"scope": "global", "text": "other"} if tool == "memory_add" else {})
    with pytest.raises(Denied) as raised:
        library(permissions=Permissions(write=True)).perform(tool_named(tool), arguments)
    assert "--allow-global-write" in raised.value.hint


NO_GLOBAL = Permissions(write=True, global_write=False, global_read=False)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_get", {"id": 1}),
        ("memory_archive", {"id": 1}),
        ("memory_feedback", {"memory_id": 1, "verdict": "useful"}),
        ("memory_search", {"query": "zebra", "scope": "global"}),
    ],
)
def test_without_global_reads_global_lessons_are_out_of_reach(
    library: MakeLibrary, tool: str, arguments: dict[str, Any]
) -> None:
    library().perform(tool_named("memory_add"), LESSON | {"scope": "global"})
    with pytest.raises(Denied, match="global lessons are off"):
        library(permissions=NO_GLOBAL).perform(tool_named(tool), arguments)


def test_without_global_reads_search_finds_the_projects_lessons_only(library: MakeLibrary) -> None:
    library().perform(tool_named("memory_add"), LESSON | {"scope": "global"})
    library().perform(tool_named("memory_add"), LESSON)
    assert [m.id for m in library().perform(tool_named("memory_search"), {"query": "zebra"}).memories] == [2, 1]
    narrowed = library(permissions=NO_GLOBAL).perform(tool_named("memory_search"), {"query": "zebra"})
    assert [memory.id for memory in narrowed.memories] == [2]


@pytest.mark.parametrize("scope", ["all", "project", "global"])
def test_no_selector_reaches_another_project(library: MakeLibrary, scope: str) -> None:
    library().perform(tool_named("memory_add"), LESSON)
    search = tool_named("memory_search")
    assert library().perform(search, {"query": "zebra"}).found == 1
    assert library(PROJECT_B).perform(search, {"query": "zebra", "scope": scope}).found == 0


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory_get", {"id": 1}),
        ("memory_supersede", {"id": 1, **LESSON}),
        ("memory_archive", {"id": 1}),
        ("memory_feedback", {"memory_id": 1, "verdict": "useful"}),
    ],
)
def test_another_projects_lesson_is_the_same_as_none(
    library: MakeLibrary, tool: str, arguments: dict[str, Any]
) -> None:
    library().perform(tool_named("memory_add"), LESSON)
    with pytest.raises(NotFound) as foreign:
        library(PROJECT_B).perform(tool_named(tool), arguments)
    renamed = {name: 7 if name in ("id", "memory_id") else value for name, value in arguments.items()}
    with pytest.raises(NotFound) as missing:
        library(PROJECT_B).perform(tool_named(tool), renamed)
    assert foreign.value.line.replace("1:", "7:") == missing.value.line
    library().perform(tool_named(tool), arguments)


def test_without_a_project_only_what_is_global_can_be_done(library: MakeLibrary) -> None:
    broken = library(Invalid("the .git file leads nowhere."), ALL)
    broken.perform(tool_named("memory_add"), LESSON | {"scope": "global"})
    assert broken.perform(tool_named("memory_search"), {"query": "zebra", "scope": "global"}).found == 1
    assert broken.perform(tool_named("memory_get"), {"id": 1}).memory.id == 1
    calls: list[tuple[str, dict[str, Any]]] = [
        ("memory_add", LESSON),
        ("memory_search", {"query": "zebra"}),
        ("memory_search", {"query": "zebra", "scope": "project"}),
    ]
    for tool, arguments in calls:
        with pytest.raises(KeepwellError, match="leads nowhere"):
            broken.perform(tool_named(tool), arguments)

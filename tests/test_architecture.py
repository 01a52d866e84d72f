"""The rooms of the house: who may import whom, where SQL may stand, and who may look at the outside world.

The tables below are the rules. A new module finds its room here by its path, or the test says that it has none.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "keepwell"

ROOMS = {
    # room: the rooms that it may import, itself included
    "model": {"model"},
    "workspace": {"workspace", "model"},
    "log": {"log"},
    "version": {"version"},
    "store": {"store", "model"},
    "search": {"search", "model"},
    "operations": {"operations", "store.port", "search", "model"},
    "config": {"config", "operations", "model"},
    "wiring": {"wiring", "config", "workspace", "operations", "store", "search", "model", "version"},
    "surfaces": {"surfaces", "operations", "model", "config", "wiring", "log", "version"},
    "face": {"face", "surfaces", "wiring", "config", "operations", "model", "version"},
}
"""`face` is the package itself and `__main__`; `store.port` is the contract without the engines."""

THIRD_PARTY = {
    "model": set(),
    "workspace": set(),
    "log": set(),
    "version": set(),
    "store": {"apsw"},
    "search": set(),
    "operations": set(),
    "config": set(),
    "wiring": set(),
    "surfaces": {"anyio", "apsw", "click", "mcp", "mcp_types", "pydantic", "rich"},
    "face": set(),
}
"""What each room may import from outside the standard library."""

OUTSIDE_WORLD = {
    "os.environ",
    "os.getenv",
    "os.urandom",
    "os.getcwd",
    "Path.cwd",
    "Path.home",
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "datetime.now",
    "uuid.uuid4",
    "random",
    "secrets",
    "platform.node",
    "socket.gethostname",
}
"""Environment, clock, home directory and randomness: only `config` and `wiring` may read these."""

SQL = re.compile(
    r"^\s*(SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX|VIRTUAL|TRIGGER)|"
    r"PRAGMA\s+\w|(?-i:BEGIN(\s+IMMEDIATE)?|COMMIT|ROLLBACK)\s*;?$|ALTER\s+TABLE|DROP\s+\w|VACUUM)",
    re.IGNORECASE | re.DOTALL,
)

MODULES = sorted(SOURCE.rglob("*.py"))


def room_of(parts: tuple[str, ...]) -> str:
    """The room of a module, given its dotted name without `keepwell`."""
    if not parts or parts == ("__main__",):
        return "face"
    return parts[0]


def dotted(path: Path) -> tuple[str, ...]:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            assert node.module
            if node.module == "keepwell":
                # `from keepwell import config` names a module
                yield from (f"keepwell.{alias.name}" for alias in node.names)
            else:
                yield node.module


def inner_imports(path: Path) -> set[tuple[str, ...]]:
    known = {dotted(module) for module in MODULES}
    found = set()
    for name in imports(path):
        if name == "keepwell" or name.startswith("keepwell."):
            parts = tuple(name.split(".")[1:])
            found.add(parts if parts in known else parts[:-1])
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_imports_only_from_rooms_that_it_may_know(path: Path) -> None:
    room = room_of(dotted(path))
    assert room in ROOMS, f"{path} stands in no room: add one to ROOMS or move it"
    for target in inner_imports(path):
        allowed = room_of(target) in ROOMS[room] or ".".join(target) in ROOMS[room]
        assert allowed, f"{room} may not import keepwell.{'.'.join(target)}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_uses_only_the_libraries_of_its_room(path: Path) -> None:
    room = room_of(dotted(path))
    for name in imports(path):
        top = name.split(".")[0]
        if top != "keepwell" and top not in sys.stdlib_module_names:
            assert top in THIRD_PARTY[room], f"{room} may not import {top}"


def test_there_is_no_import_cycle() -> None:
    graph = {dotted(path): inner_imports(path) for path in MODULES}
    finished: set[tuple[str, ...]] = set()

    def visit(module: tuple[str, ...], trail: tuple[tuple[str, ...], ...]) -> None:
        assert module not in trail, f"import cycle: {' > '.join('.'.join(step) or 'keepwell' for step in trail)}"
        if module in finished:
            return
        for target in graph.get(module, set()):
            if target != module:
                visit(target, (*trail, module))
        finished.add(module)

    for module in graph:
        visit(module, ())


def strings(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_sql_stands_in_sql_files_only(path: Path) -> None:
    for text in strings(ast.parse(path.read_text(encoding="utf-8"))):
        assert not SQL.match(text), f"{path} holds SQL: {text[:60]!r}"


def test_the_search_for_sql_would_find_some() -> None:
    assert SQL.match("SELECT id FROM memories")
    assert SQL.match("BEGIN IMMEDIATE")
    assert not SQL.match("Begin with a search.")


def dotted_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if room_of(dotted(path)) not in ("config", "wiring")],
    ids=lambda path: str(path.relative_to(SOURCE)),
)
def test_only_config_and_wiring_look_at_the_outside_world(path: Path) -> None:
    used = set(dotted_names(ast.parse(path.read_text(encoding="utf-8"))))
    assert not used & OUTSIDE_WORLD


def test_the_search_for_the_outside_world_finds_what_wiring_uses() -> None:
    wiring = ast.parse((SOURCE / "wiring.py").read_text(encoding="utf-8"))
    assert {"os.environ", "os.urandom", "time.time_ns"} <= set(dotted_names(wiring))

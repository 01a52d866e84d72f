"""What a launch binds: permissions, project and attribution, seen from the client's side."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rawpipe import RawPipe
from realserver import EVIDENCE, Place, answer_of, error_of

READING = {"memory_search", "memory_get", "memory_feedback"}
WRITING = {"memory_add", "memory_supersede", "memory_archive"}
CATEGORY_READING = {"memory_read", "memory_list", "memory_history", "memory_delta", "memory_context"}
CATEGORY_WRITING = {"memory_write", "memory_append", "memory_delete"}
LESSON: dict[str, Any] = {"text": "zebra", "evidence": EVIDENCE}


def git(folder: Path, *words: str | Path) -> None:
    usual = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = {f"GIT_{who}_{what}": "a@b.c" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    command = ["git", "-c", "protocol.file.allow=always", "-C", str(folder), *map(str, words)]
    subprocess.run(command, check=True, capture_output=True, env=usual | identity)


@pytest.fixture
def repository(place: Place) -> Path:
    folder = place.project("main")
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    return folder


def tools(pipe: RawPipe) -> set[str]:
    return {tool["name"] for tool in pipe.answer("tools/list")["result"]["tools"]}


def search(pipe: RawPipe, **more: Any) -> dict[str, Any]:
    return answer_of(pipe.call("memory_search", {"query": "zebra", **more}))


def save(place: Place, workspace: Path | None = None, **more: Any) -> int:
    with place.raw("--allow-write", "--allow-global-write", workspace=workspace) as pipe:
        number: int = answer_of(pipe.call("memory_add", LESSON | more))["id"]
        return number


def test_tools_that_the_launch_forbids_are_not_listed_and_name_the_flag_when_called(place: Place) -> None:
    save(place)
    with place.raw() as pipe:
        assert tools(pipe) == READING | CATEGORY_READING
        for tool in WRITING | CATEGORY_WRITING:
            assert "--allow-write" in error_of(pipe.call(tool, {"id": 1, **LESSON}))
        assert search(pipe)["found"] == 1
    with place.raw("--allow-write") as pipe:
        assert tools(pipe) == READING | WRITING | CATEGORY_READING | CATEGORY_WRITING
    with place.raw("--allow-write", "--tools", "lessons") as pipe:
        assert tools(pipe) == READING | WRITING
        assert "--tools" in error_of(pipe.call("memory_list"))


def test_reports_and_counts_are_kept_when_lessons_may_not_be_changed(place: Place) -> None:
    save(place)
    with place.raw() as pipe:
        assert search(pipe)["request_id"] == 1
        assert answer_of(pipe.call("memory_feedback", {"memory_id": 1, "verdict": "useful"}))["outcome"] == "recorded"
        counts = answer_of(pipe.call("memory_get", {"id": 1}))["memory"]["statistics"]
    assert (counts["retrieval_count"], counts["useful_count"]) == (1, 1)


def test_global_lessons_are_read_by_default_and_written_by_their_own_flag_only(place: Place) -> None:
    save(place, scope="global")
    with place.raw("--allow-write") as pipe:
        assert search(pipe)["found"] == search(pipe, scope="global")["found"] == 1
        assert "--allow-global-write" in error_of(pipe.call("memory_add", LESSON | {"scope": "global"}))
        assert "--allow-global-write" in error_of(pipe.call("memory_archive", {"id": 1}))
    with place.raw("--allow-write", "--no-global-read") as pipe:
        assert search(pipe)["found"] == 0
        assert "--no-global-read" in error_of(pipe.call("memory_search", {"query": "zebra", "scope": "global"}))
        assert "--no-global-read" in error_of(pipe.call("memory_get", {"id": 1}))


@pytest.mark.parametrize(
    "flags",
    [
        ["--allow-global-write"],
        ["--allow-write", "--allow-global-write", "--no-global-read"],
        ["--tools", "nothing"],
        ["--client", ""],
        ["--unknown"],
    ],
)
def test_a_wrong_launch_fails_on_one_line_before_anything_is_made(place: Place, flags: list[str]) -> None:
    command = [*place.command(), *flags]
    ran = subprocess.run(command, env=place.environment(), capture_output=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert ran.stdout == b""
    assert ran.stderr.startswith(b"keepwell: invalid: ")
    assert ran.stderr.count(b"\n") == 1
    assert not place.database.exists()


def test_no_call_of_project_b_reaches_what_project_a_finds(place: Place) -> None:
    a, b = place.project("a"), place.project("b")
    save(place, workspace=a)
    with place.raw("--allow-write", workspace=a) as pipe:
        assert [memory["text"] for memory in search(pipe)["memories"]] == ["zebra"]
        assert search(pipe)["project"] == str(a)
    with place.raw("--allow-write", workspace=b) as pipe:
        for scope in ("all", "project", "global"):
            assert search(pipe, scope=scope)["memories"] == []
        calls: list[tuple[str, dict[str, Any]]] = [
            ("memory_get", {"id": 1}),
            ("memory_supersede", {"id": 1, "text": "x", "evidence": EVIDENCE}),
            ("memory_archive", {"id": 1}),
            ("memory_feedback", {"memory_id": 1, "verdict": "useful"}),
        ]
        for tool, arguments in calls:
            line = error_of(pipe.call(tool, arguments))
            assert line.startswith("not_found: ")
            assert "zebra" not in line
        assert b"zebra" not in pipe.output.raw.replace(b'"query":"zebra"', b"")


def test_work_trees_share_a_memory_and_submodules_and_clones_have_their_own(place: Place, repository: Path) -> None:
    (repository / "deep").mkdir()
    library = place.project("library")
    git(library, "init", "-q")
    git(library, "commit", "-q", "--allow-empty", "-m", "first")
    git(repository, "submodule", "add", "-q", library, "sub")
    git(repository, "worktree", "add", "-q", place.root / "tree", "-b", "other")
    git(place.root, "clone", "-q", repository, "clone")
    (place.root / "link").symlink_to(repository)
    save(place, workspace=repository)
    for same in (repository / "deep", place.root / "tree", place.root / "link"):
        with place.raw(workspace=same) as pipe:
            assert (search(pipe)["found"], search(pipe)["project"]) == (1, str(repository))
    for other in (repository / "sub", place.root / "clone"):
        with place.raw(workspace=other) as pipe:
            assert (search(pipe)["found"], search(pipe)["project"]) == (0, str(other))


def test_the_project_is_the_flags_then_the_gateways_then_the_working_directorys(place: Place) -> None:
    flag, gateway, here = (place.project(name) for name in ("flag", "gateway", "here"))
    command = place.command(workspace=flag)
    without_flag = [word for word in command if word not in ("--workspace", str(flag))]
    gateway_set = {"MCP_GATEWAY_WORKSPACE": str(gateway)}
    for launch, env, project in (
        (command, gateway_set, flag),
        (without_flag, gateway_set, gateway),
        (without_flag, {"MCP_GATEWAY_WORKSPACE": ""}, here),
    ):
        with RawPipe(launch, env=env, cwd=here) as pipe:
            pipe.initialize()
            assert search(pipe)["project"] == str(project)


def break_git_file(folder: Path, _place: Place) -> dict[str, str]:
    (folder / ".git").write_text("gitdir: /nowhere/at/all\n")
    return {}


def make_bare(folder: Path, _place: Place) -> dict[str, str]:
    git(folder, "init", "-q", "--bare")
    return {}


def hide_git(folder: Path, place: Place) -> dict[str, str]:
    git(folder, "init", "-q")
    empty = place.project("empty-path")
    return {"PATH": str(empty)}


def hang_git(folder: Path, place: Place) -> dict[str, str]:
    git(folder, "init", "-q")
    script = place.project("slow-path") / "git"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    return {"PATH": f"{script.parent}:{os.environ['PATH']}"}


def leak_git_dir(folder: Path, place: Place) -> dict[str, str]:
    git(folder, "init", "-q")
    decoy = place.project("decoy")
    git(decoy, "init", "-q")
    return {"GIT_DIR": str(decoy / ".git")}


BROKEN = {
    "a dangling .git file": (break_git_file, "Git"),
    "a bare repository": (make_bare, "bare"),
    "git not on PATH": (hide_git, "git"),
    "git that hangs": (hang_git, "5 seconds"),
    "GIT_DIR of another repository": (leak_git_dir, "GIT_DIR"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_project_that_cannot_be_told_is_an_error_at_each_call_and_never_a_guess(place: Place, kind: str) -> None:
    spoil, word = BROKEN[kind]
    folder = place.project("broken")
    env = spoil(folder, place)
    command = [word for word in place.command("--allow-write") if word not in ("--workspace", str(place.project()))]
    with RawPipe(command, env=env, cwd=folder) as pipe:
        pipe.initialize()
        assert tools(pipe) >= READING | WRITING
        for tool, arguments in (("memory_search", {"query": "zebra"}), ("memory_add", LESSON)):
            line = error_of(pipe.call(tool, arguments))
            assert word.lower() in line.lower()
            assert str(place.root) not in line
        assert search(pipe, scope="global")["found"] == 0
    with place.raw() as pipe:
        assert search(pipe)["found"] == 0


def test_a_renamed_project_is_told_how_to_get_its_lessons_back(place: Place, repository: Path) -> None:
    save(place, workspace=repository)
    renamed = repository.rename(place.root / "renamed")
    with place.raw(workspace=renamed) as pipe:
        assert "keepwell relink" in search(pipe)["warnings"][0]
    command = [*place.command(workspace=renamed), "relink", str(repository)]
    command.remove("serve")
    subprocess.run(command, check=True, capture_output=True, env=place.environment())
    with place.raw(workspace=renamed) as pipe:
        assert search(pipe)["found"] == 1


def test_who_wrote_a_lesson_is_what_the_launcher_said_and_not_what_the_client_claims(place: Place) -> None:
    with place.raw("--allow-write", "--session", "s-1", "--model", "m-1") as pipe:
        answer_of(pipe.call("memory_add", LESSON))
    with place.raw("--allow-write") as pipe:
        answer_of(pipe.call("memory_add", {"text": "quagga", "evidence": EVIDENCE}))
        sources = [answer_of(pipe.call("memory_get", {"id": number}))["memory"]["source"] for number in (1, 2)]
    assert sources == [{"client": "pi", "session": "s-1", "model": "m-1"}, {"client": "pi"}]


def test_every_declared_parameter_has_an_effect_that_can_be_read_back(place: Place) -> None:
    with place.raw("--allow-write", "--allow-global-write") as pipe:
        evidence = [{"description": "d1", "source_uri": "u1"}, {"description": "d2"}]
        arguments = {"text": "zebra t", "evidence": evidence, "scope": "global", "reason": "r1", "operation_id": "o1"}
        first = answer_of(pipe.call("memory_add", arguments))
        assert answer_of(pipe.call("memory_add", arguments))["repeated"] is True
        got = answer_of(pipe.call("memory_get", {"id": first["id"]}))
        assert (got["memory"]["text"], got["memory"]["evidence"]) == ("zebra t", evidence)
        assert (got["memory"]["scope"], got["events"][0]["reason"]) == ("global", "r1")
        report = {"memory_id": first["id"], "verdict": "not_useful", "reason": "r2", "operation_id": "o2"}
        answer_of(pipe.call("memory_feedback", report))
        [kept] = answer_of(pipe.call("memory_get", {"id": first["id"]}))["feedback"]
        assert (kept["verdict"], kept["reason"]) == ("not_useful", "r2")
        answer_of(pipe.call("memory_add", LESSON))
        assert len(search(pipe, limit=1)["memories"]) == 1
        found = {scope: search(pipe, scope=scope)["found"] for scope in ("all", "project", "global")}
        assert found == {"all": 2, "project": 1, "global": 1}


def test_a_start_with_a_bare_environment_works(place: Place) -> None:
    python_folder = str(Path(shutil.which("git") or "/usr/bin/git").parent)
    keep = {"PATH": f"/usr/bin:/bin:{python_folder}", "PYTHONPATH": place.environment()["PYTHONPATH"]}
    ran = subprocess.run(
        place.command("--allow-write"),
        input=b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},'
        b'"clientInfo":{"name":"bare","version":"0"}}}\n',
        env=keep,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0
    assert b'"serverInfo"' in ran.stdout


@pytest.mark.parametrize(
    "env",
    [{"LC_ALL": "C", "PYTHONUTF8": "0"}, {"PYTHONIOENCODING": "cp1252"}, {"PYTHONIOENCODING": "cp936"}],
    ids=str,
)
def test_no_code_page_touches_a_lesson(place: Place, env: dict[str, str]) -> None:
    text = "日本語 한국어 😀 ünïcödé"
    with place.raw("--allow-write", env=env) as pipe:
        added = answer_of(pipe.call("memory_add", {"text": text, "evidence": [{"description": text}]}))
        got = answer_of(pipe.call("memory_get", {"id": added["id"]}))["memory"]
        assert (got["text"], got["evidence"][0]["description"]) == (text, text)
        assert b"\r" not in pipe.output.raw
        assert text.encode() in pipe.output.raw


def test_ids_are_interchangeable_between_every_call_and_never_used_again(place: Place) -> None:
    with place.raw("--allow-write") as pipe:
        for number, text in enumerate(("zebra one", "zebra two", "zebra three", "zebra four"), start=1):
            assert answer_of(pipe.call("memory_add", {"text": text, "evidence": EVIDENCE}))["id"] == number
            if number == 3:
                answer_of(pipe.call("memory_archive", {"id": number}))
        assert {memory["id"] for memory in search(pipe)["memories"]} == {1, 2, 4}
        assert answer_of(pipe.call("memory_get", {"id": 3}))["memory"]["text"] == "zebra three"

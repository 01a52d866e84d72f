import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from keepwell.model.errors import Conflict, Corrupt, Denied, Invalid, KeepwellError, Unsupported
from keepwell.model.scope import Project
from keepwell.workspace import resolve, spelling

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to another user or mount")


@pytest.fixture
def launch(tmp_path: Path) -> dict[str, str]:
    """The environment an assistant launches keepwell with: no leaked git variable, nobody's git configuration."""
    home = tmp_path / "home"
    home.mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(home)}


def git(folder: Path, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    command = ["git", "-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, text=True).stdout


def checkout(folder: Path) -> Path:
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    (folder / "file").write_text("x")
    git(folder, "add", "file")
    git(folder, "commit", "--quiet", "--message", "x")
    return folder


def linked(main: Path, folder: Path) -> Path:
    git(main, "worktree", "add", "--quiet", "-b", folder.name, str(folder))
    return folder


def superproject(folder: Path) -> Path:
    """A checkout with the submodule `part`."""
    checkout(folder)
    git(folder, "submodule", "--quiet", "add", str(checkout(folder.parent / "upstream")), "part")
    git(folder, "commit", "--quiet", "--message", "part")
    return folder


def named(folder: Path, launch: Mapping[str, str]) -> Project:
    return resolve(folder, environment=launch, explicit=True)


def refusal(kind: type[KeepwellError], folder: Path, launch: Mapping[str, str], *, explicit: bool = True) -> str:
    """The one line of the error that resolving ends with; it names a remedy and no path."""
    with pytest.raises(kind) as caught:
        resolve(folder, environment=launch, explicit=explicit)
    assert type(caught.value) is kind
    assert caught.value.hint
    assert str(folder.parent) not in caught.value.line
    return caught.value.line


def script(file: Path, body: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(0o755)
    return file


def listing(folder: Path) -> list[tuple[str, int, int, int]]:
    entries = [folder, *sorted(folder.rglob("*"))]
    return [(str(entry), entry.lstat().st_mtime_ns, entry.lstat().st_size, entry.lstat().st_mode) for entry in entries]


# Folders outside Git


def test_folder_outside_git_is_its_own_project(tmp_path: Path, launch: dict[str, str]) -> None:
    folder = tmp_path / "notes.git"
    folder.mkdir()
    assert named(folder, launch) == Project(str(folder), "notes.git", folder.stat().st_ino)


def test_file_system_root_is_named_after_itself(launch: dict[str, str]) -> None:
    assert named(Path("/"), launch) == Project("/", "/", Path("/").stat().st_ino)


def test_subfolder_outside_git_is_another_project_and_inside_git_the_same(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    main = checkout(tmp_path / "main")
    for folder in (main, tmp_path / "plain"):
        (folder / "deep" / "er").mkdir(parents=True)
    assert named(main / "deep" / "er", launch) == named(main, launch)
    assert named(tmp_path / "plain" / "deep" / "er", launch) != named(tmp_path / "plain", launch)


@pytest.mark.parametrize("children", [0, 1, 2])
def test_folder_that_holds_repositories_is_a_plain_folder(
    children: int, tmp_path: Path, launch: dict[str, str]
) -> None:
    folder = tmp_path / "several"
    folder.mkdir()
    for number in range(children):
        child = checkout(folder / f"child{number}")
        assert named(child, launch).path == str(child)
    assert named(folder, launch).path == str(folder)


def test_folder_with_a_file_named_head_is_a_plain_folder(tmp_path: Path, launch: dict[str, str]) -> None:
    for name in ("HEAD", "refs"):
        (tmp_path / name).mkdir()
    assert named(tmp_path / "refs", launch).path == str(tmp_path / "refs")
    git(tmp_path, "init", "--quiet")
    assert named(tmp_path / "refs", launch).path == str(tmp_path)


def test_missing_folder_and_file_and_nul_and_link_loop_are_invalid(tmp_path: Path, launch: dict[str, str]) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "does not exist" in refusal(Invalid, tmp_path / "missing", launch)
    assert "not a folder" in refusal(Invalid, tmp_path / "file", launch)
    assert "NUL" in refusal(Invalid, tmp_path / "a\0b", launch)
    assert "does not exist" in refusal(Invalid, tmp_path / "loop", launch)
    assert named(tmp_path, launch).path == str(tmp_path)


@as_root
def test_folder_this_user_may_not_read_is_denied(tmp_path: Path, launch: dict[str, str]) -> None:
    hidden = tmp_path / "hidden"
    (hidden / "inner").mkdir(parents=True)
    hidden.chmod(0o700)
    assert named(hidden / "inner", launch).name == "inner"
    os.seteuid(65534)
    try:
        line = refusal(Denied, hidden / "inner", launch)
    finally:
        os.seteuid(0)
    assert "refuses to read" in line


@as_root
def test_folder_whose_repository_cannot_be_seen_does_not_pass_for_the_outer_one(launch: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as temporary:  # pytest's own folder lets no other user in
        outer = Path(temporary)
        outer.chmod(0o755)
        git(outer, "init", "--quiet")
        inner = checkout(outer / "inner")
        inner.chmod(0o600)
        assert named(inner, launch).path == str(inner)
        os.seteuid(65534)
        try:
            line = refusal(Denied, inner, launch)
        finally:
            os.seteuid(0)
    assert "refuses to read" in line


# One spelling


def test_link_and_trailing_slash_and_dots_and_relative_path_lead_to_one_project(
    tmp_path: Path, launch: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main = checkout(tmp_path / "main")
    (main / "deep").mkdir()
    (tmp_path / "alias").symlink_to(main)
    (tmp_path / "deepalias").symlink_to(main / "deep")
    monkeypatch.chdir(main)
    spellings = [
        f"{main}/",
        f"{main}/deep/..",
        f"{tmp_path}/./main//deep",
        f"{tmp_path}/alias",
        f"{tmp_path}/deepalias",
    ]
    assert {named(Path(text), launch) for text in [*spellings, "", ".", "deep"]} == {named(main, launch)}
    assert named(checkout(tmp_path / "other"), launch) != named(main, launch)


@pytest.mark.parametrize(
    ("name", "entries", "expected"),
    [
        ("proj", ["Proj", "other"], "Proj"),
        ("PROJ", ["proj"], "proj"),
        ("cafe\u0301", ["caf\u00e9"], "caf\u00e9"),
        ("CAFE\u0301", ["caf\u00e9"], "caf\u00e9"),
        ("STRASSE", ["Straße"], "Straße"),
        ("proj", ["Proj", "proj"], "proj"),
        ("proj", ["project", "roj"], "proj"),
        ("proj", [], "proj"),
    ],
)
def test_name_takes_the_spelling_its_folder_lists(name: str, entries: list[str], expected: str) -> None:
    assert spelling(name, entries, same=lambda entry: True) == expected


def test_entry_that_differs_in_case_and_is_another_file_is_left_alone() -> None:
    assert spelling("proj", ["PROJ", "Proj"], same=lambda entry: entry == "Proj") == "Proj"
    assert spelling("proj", ["PROJ", "Proj"], same=lambda entry: False) == "proj"


def test_names_that_differ_in_case_are_two_projects_where_the_file_system_says_so(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    for name in ("Proj", "proj", "pROJ", "caf\u00e9", "cafe\u0301"):
        try:
            (tmp_path / name).mkdir()
        except FileExistsError:
            pytest.skip("this file system ignores case or normalisation")
        assert named(tmp_path / name, launch).path == str(tmp_path / name)


@pytest.fixture
def caseless(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system that ignores case: the temporary one (macOS), or a loop mount where root may."""
    (tmp_path / "Probe").mkdir()
    if (tmp_path / "probe").exists():
        yield tmp_path
        return
    image, mounted = tmp_path / "image", tmp_path / "mounted"
    mounted.mkdir()
    for make, options in (
        (["mkfs.ext4", "-q", "-O", "casefold", "-E", "encoding=utf8"], "loop"),
        (["mkfs.vfat"], "loop,utf8"),
    ):
        with image.open("wb") as file:
            file.truncate(16 << 20)
        commands = [[*make, str(image)], ["mount", "-o", options, str(image), str(mounted)]]
        if all(
            shutil.which(command[0]) and not subprocess.run(command, capture_output=True).returncode
            for command in commands
        ):
            break
    else:
        pytest.skip("no file system that ignores case can be mounted here")
    folder = mounted / "folder"
    folder.mkdir()
    subprocess.run(["chattr", "+F", str(folder)], capture_output=True)
    yield folder
    subprocess.run(["umount", str(mounted)], check=True)


def test_paths_that_differ_only_in_case_are_one_project_where_the_file_system_ignores_it(
    caseless: Path, launch: dict[str, str]
) -> None:
    main = checkout(caseless / "Proj")
    (main / "Nested").mkdir()
    assert named(caseless / "pROJ" / "nested", launch) == named(main, launch)
    assert named(main, launch).path == str(main)
    (caseless / "Plain").mkdir()
    assert named(caseless / "plain", launch).path == str(caseless / "Plain")


@pytest.mark.parametrize("name", ["with space", "new\nline", "ünï côde", "end\n", "-dash", "a:b", "quo'te\"s"])
def test_unusual_names_are_kept(name: str, tmp_path: Path, launch: dict[str, str]) -> None:
    main = checkout(tmp_path / name)
    assert named(main, launch) == Project(str(main), name, main.stat().st_ino)
    assert named(linked(main, tmp_path / "tree"), launch) == named(main, launch)


def test_bare_repository_whose_name_ends_in_a_newline_is_kept(tmp_path: Path, launch: dict[str, str]) -> None:
    checkout(tmp_path / "main")
    git(tmp_path, "clone", "--quiet", "--bare", "main", "hub \n")
    tree = linked(tmp_path / "hub \n", tmp_path / "tree")
    assert named(tree, launch).path == f"{tmp_path}/hub \n"


def test_path_that_is_not_utf8_is_invalid(tmp_path: Path, launch: dict[str, str]) -> None:
    good, bad = tmp_path / "caf\u00e9", tmp_path / os.fsdecode(b"caf\xe9")
    good.mkdir()
    try:
        bad.mkdir()
    except OSError:
        pytest.skip("this file system holds only UTF-8 names")
    assert "UTF-8" in refusal(Invalid, bad, launch)
    git(bad, "init", "--quiet")
    assert "UTF-8" in refusal(Invalid, bad, launch)
    assert named(good, launch).name == "caf\u00e9"


# One repository, one project


def test_linked_work_tree_and_nested_folder_and_detached_head_share_the_main_checkout(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    main = checkout(tmp_path / "main")
    tree = linked(main, tmp_path / "tree")
    (tree / "nested").mkdir()
    expected = Project(str(main), "main", main.stat().st_ino)
    assert [named(folder, launch) for folder in (main, tree, tree / "nested")] == [expected] * 3
    for folder in (main, tree):
        git(folder, "checkout", "--quiet", "--detach")
    assert [named(folder, launch) for folder in (main, tree)] == [expected] * 2


def test_repository_without_a_commit_is_a_project(tmp_path: Path, launch: dict[str, str]) -> None:
    git(tmp_path, "init", "--quiet", "fresh")
    assert named(tmp_path / "fresh", launch).path == str(tmp_path / "fresh")


def test_clone_is_a_project_of_its_own(tmp_path: Path, launch: dict[str, str]) -> None:
    main = checkout(tmp_path / "main")
    git(tmp_path, "clone", "--quiet", "main", "clone")
    assert named(tmp_path / "clone", launch).path == str(tmp_path / "clone")
    assert named(main, launch).path == str(main)


def test_checkout_inside_a_checkout_is_a_project_of_its_own(tmp_path: Path, launch: dict[str, str]) -> None:
    outer = checkout(tmp_path / "outer")
    inner = checkout(outer / "inner")
    assert named(inner, launch).path == str(inner)
    assert named(outer, launch).path == str(outer)


def test_submodule_is_apart_from_its_superproject_and_shares_with_its_own_work_trees(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    main = superproject(tmp_path / "super")
    tree = linked(main / "part", tmp_path / "tree")
    assert named(main / "part", launch) == Project(str(main / "part"), "part", (main / "part").stat().st_ino)
    assert named(tree, launch) == named(main / "part", launch)
    assert named(main, launch).path == str(main)


def test_submodule_whose_work_tree_is_set_in_the_work_tree_configuration_keeps_its_identity(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    part = superproject(tmp_path / "super") / "part"
    tree = linked(part, tmp_path / "tree")
    before = named(tree, launch)
    shared = part.parent / ".git" / "modules" / "part" / "config"
    git(part, "config", "extensions.worktreeConfig", "true")
    git(part, "config", "--worktree", "core.worktree", "../../../part")
    git(part, "config", "--file", str(shared), "--unset", "core.worktree")
    assert named(tree, launch) == named(part, launch) == before


def test_main_checkout_with_a_work_tree_configuration_keeps_its_identity(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    main = checkout(tmp_path / "main")
    tree = linked(main, tmp_path / "tree")
    git(main, "config", "extensions.worktreeConfig", "true")
    git(main, "config", "--worktree", "core.bare", "false")
    git(tree, "config", "--worktree", "core.sparseCheckout", "true")
    assert named(tree, launch) == named(main, launch)
    assert named(main, launch).path == str(main)


def test_work_tree_configuration_counts_only_when_it_is_switched_on(tmp_path: Path, launch: dict[str, str]) -> None:
    main = checkout(tmp_path / "main")
    (tmp_path / "elsewhere").mkdir()
    git(main, "config", "--file", ".git/config.worktree", "core.worktree", str(tmp_path / "elsewhere"))
    assert named(main, launch).path == str(main)
    git(main, "config", "extensions.worktreeConfig", "true")
    assert named(main, launch).path == str(tmp_path / "elsewhere")


def test_work_trees_of_a_bare_repository_share_it_and_the_bare_folder_itself_is_refused(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    checkout(tmp_path / "main")
    git(tmp_path, "clone", "--quiet", "--bare", "main", "hub.git")
    hub = tmp_path / "hub.git"
    trees = [linked(hub, tmp_path / name) for name in ("one", "two")]
    assert {named(tree, launch) for tree in trees} == {Project(str(hub), "hub", hub.stat().st_ino)}
    assert "bare" in refusal(Unsupported, hub, launch)
    assert "bare" in refusal(Unsupported, hub / "objects", launch)


def test_hidden_bare_repository_is_named_after_the_folder_around_it(tmp_path: Path, launch: dict[str, str]) -> None:
    checkout(tmp_path / "main")
    around = tmp_path / "around"
    git(tmp_path, "clone", "--quiet", "--bare", "main", "around/.bare")
    (around / ".git").write_text("gitdir: ./.bare\n")
    tree = linked(around, around / "tree")
    assert named(tree, launch).name == "around"
    assert named(tree, launch) == named(around, launch)


def test_separate_git_directory_is_shared_by_its_checkout_and_work_trees(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    main = checkout(tmp_path / "main")
    git(main, "init", "--quiet", "--separate-git-dir", str(tmp_path / "kept.git"))
    kept = Project(str(tmp_path / "kept.git"), "kept", (tmp_path / "kept.git").stat().st_ino)
    tree = linked(main, tmp_path / "tree")
    assert [named(folder, launch) for folder in (main, tree, tmp_path / "kept.git")] == [kept] * 3


@pytest.mark.parametrize("inside", [".git", ".git/objects", ".git/worktrees/tree"])
def test_folder_inside_the_git_directory_belongs_to_the_main_checkout(
    inside: str, tmp_path: Path, launch: dict[str, str]
) -> None:
    main = checkout(tmp_path / "main")
    linked(main, tmp_path / "tree")
    assert named(main / inside, launch) == named(main, launch)


def test_git_directory_of_a_submodule_belongs_to_the_submodule(tmp_path: Path, launch: dict[str, str]) -> None:
    main = superproject(tmp_path / "super")
    assert named(main / ".git" / "modules" / "part", launch).path == str(main / "part")


def test_rename_and_move_keep_the_inode(tmp_path: Path, launch: dict[str, str]) -> None:
    main = checkout(tmp_path / "main")
    before = named(main, launch)
    renamed = main.rename(tmp_path / "renamed")
    (tmp_path / "below").mkdir()
    after = named(renamed.rename(tmp_path / "below" / "moved"), launch)
    assert after == Project(str(tmp_path / "below" / "moved"), "moved", before.inode)
    assert named(checkout(tmp_path / "main"), launch).inode != before.inode


def test_remote_and_its_change_do_not_matter(tmp_path: Path, launch: dict[str, str]) -> None:
    main = checkout(tmp_path / "main")
    before = named(main, launch)
    git(main, "remote", "add", "origin", "https://example.org/one.git")
    assert named(main, launch) == before
    git(main, "remote", "set-url", "origin", "https://example.org/two.git")
    assert named(main, launch) == before


# Broken repositories


def broken_file(folder: Path) -> None:
    (folder / ".git").write_text("gitdir: /nowhere/at/all\n")


def unparsable_file(folder: Path) -> None:
    (folder / ".git").write_text("what is this")


def empty_file(folder: Path) -> None:
    (folder / ".git").touch()


def empty_folder(folder: Path) -> None:
    (folder / ".git").mkdir()


def dangling_link(folder: Path) -> None:
    (folder / ".git").symlink_to("/nowhere/at/all")


def pipe(folder: Path) -> None:
    os.mkfifo(folder / ".git")


def lookalike(folder: Path) -> None:
    for name in ("HEAD", "objects", "refs"):
        (folder / name).mkdir()


@pytest.mark.timeout(30)
@pytest.mark.parametrize("within_a_repository", [False, True])
@pytest.mark.parametrize(
    "damage", [broken_file, unparsable_file, empty_file, empty_folder, dangling_link, pipe, lookalike]
)
def test_broken_repository_is_refused_and_never_passes_for_the_outer_one(
    damage: Callable[[Path], None], *, within_a_repository: bool, tmp_path: Path, launch: dict[str, str]
) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    if within_a_repository:
        git(outer, "init", "--quiet")
    inner = outer / "inner"
    (inner / "deep").mkdir(parents=True)
    assert named(inner, launch).path == str(outer if within_a_repository else inner)
    damage(inner)
    assert "broken" in refusal(Corrupt, inner, launch)
    assert "broken" in refusal(Corrupt, inner / "deep", launch)


def test_work_tree_whose_main_checkout_moved_away_is_refused_until_it_is_repaired(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    main = checkout(tmp_path / "main")
    tree = linked(main, tmp_path / "tree")
    moved = main.rename(tmp_path / "moved")
    assert "worktree repair" in refusal(Corrupt, tree, launch)
    assert named(moved, launch).path == str(moved)
    git(moved, "worktree", "repair", str(tree))
    assert named(tree, launch) == named(moved, launch)


def test_configured_work_tree_that_is_not_there_is_refused(tmp_path: Path, launch: dict[str, str]) -> None:
    part = superproject(tmp_path / "super") / "part"
    tree = linked(part, tmp_path / "tree")
    assert named(tree, launch).path == str(part)
    part.rename(tmp_path / "away")
    assert "broken" in refusal(Corrupt, tree, launch)


def test_unreadable_configuration_is_refused(tmp_path: Path, launch: dict[str, str]) -> None:
    main = checkout(tmp_path / "main")
    assert named(main, launch).path == str(main)
    with (main / ".git" / "config").open("a") as file:
        file.write("[core\n")
    assert "broken" in refusal(Corrupt, main, launch)


def test_repository_of_a_newer_format_is_refused_with_the_remedy(tmp_path: Path, launch: dict[str, str]) -> None:
    main = checkout(tmp_path / "main")
    git(main, "config", "core.repositoryFormatVersion", "1")
    assert named(main, launch).path == str(main)
    git(main, "config", "extensions.tomorrow", "true")
    assert "newer git" in refusal(Unsupported, main, launch)


@as_root
def test_repository_of_another_user_is_denied_until_it_is_trusted(tmp_path: Path, launch: dict[str, str]) -> None:
    main = checkout(tmp_path / "main")
    for path in (main, *main.rglob("*")):
        os.chown(path, 12345, 12345)
    leaky = {**launch, "GIT_TEST_ASSUME_DIFFERENT_OWNER": "0", "GIT_CONFIG_COUNT": "1"}
    leaky |= {"GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
    line = refusal(Denied, main, leaky)
    assert "dubious ownership" in line
    assert "safe.directory" in line
    assert "--workspace" in line
    Path(launch["HOME"], ".gitconfig").write_text(f"[safe]\n\tdirectory = {main}\n")
    assert named(main, launch).path == str(main)


# The git binary


def test_missing_git_is_reported_inside_a_repository_and_not_needed_outside(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    main = checkout(tmp_path / "main")
    for path in ({"PATH": str(tmp_path)}, {"PATH": ""}, {}):
        bare = {"HOME": launch["HOME"], **path}
        assert "not on PATH" in refusal(Unsupported, main, bare)
        assert named(tmp_path, bare).path == str(tmp_path)


def test_git_is_asked_inside_a_repository_only_and_without_leaked_variables(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    seen = tmp_path / "seen"
    real = shutil.which("git")
    script(tmp_path / "first" / "git", f'env >>"{seen}"\nexec {real} "$@"')
    leaky = {**launch, "PATH": f"{tmp_path / 'first'}:{launch['PATH']}", "GIT_INDEX_FILE": "/x", "GIT_TRACE": "1"}
    assert named(tmp_path, leaky).path == str(tmp_path)
    assert not seen.exists()
    main = checkout(tmp_path / "main")
    assert named(main, leaky).path == str(main)
    lines = set(seen.read_text().splitlines())
    assert {"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", f"HOME={launch['HOME']}"} <= lines
    assert {line for line in lines if line.startswith("GIT_")} == {"GIT_OPTIONAL_LOCKS=0"}


def test_git_leaves_the_input_of_the_server_alone(tmp_path: Path, launch: dict[str, str]) -> None:
    main = checkout(tmp_path / "main")
    script(tmp_path / "first" / "git", f'cat >>"{tmp_path / "eaten"}"\nexec {shutil.which("git")} "$@"')
    reading, writing = os.pipe()
    os.write(writing, b"protocol")
    os.close(writing)
    before = os.dup(0)
    os.dup2(reading, 0)
    try:
        assert named(main, {**launch, "PATH": f"{tmp_path / 'first'}:{launch['PATH']}"}).path == str(main)
        assert os.read(0, 100) == b"protocol"
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(reading)
    assert (tmp_path / "eaten").read_bytes() == b""


def alive(process: int) -> bool:
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_hanging_git_is_given_up_after_five_seconds_and_killed_with_its_children(
    tmp_path: Path, launch: dict[str, str]
) -> None:
    main = checkout(tmp_path / "main")
    pids = tmp_path / "pids"
    script(tmp_path / "first" / "git", f'sleep 60 &\necho $$ $! >"{pids}"\nwait')
    slow = {**launch, "PATH": f"{tmp_path / 'first'}:{launch['PATH']}"}
    start = time.monotonic()
    line = refusal(Unsupported, main, slow)
    assert time.monotonic() - start < 20
    assert "did not answer within 5 seconds" in line
    processes = [int(text) for text in pids.read_text().split()]
    assert len(processes) == 2
    while any(alive(process) for process in processes):  # a killed process is gone a moment later; bounded by timeout
        time.sleep(0.05)
    assert named(main, launch).path == str(main)


def test_git_that_cannot_be_started_is_reported(tmp_path: Path, launch: dict[str, str]) -> None:
    main = checkout(tmp_path / "main")
    script(tmp_path / "first" / "git", "").write_bytes(b"\x7fnot a program")
    assert "could not be started" in refusal(Unsupported, main, {**launch, "PATH": str(tmp_path / "first")})
    assert named(main, launch).path == str(main)


def test_git_is_never_taken_from_the_repository_itself(
    tmp_path: Path, launch: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main = checkout(tmp_path / "main")
    ran = tmp_path / "ran"
    program = script(main / "git", f'touch "{ran}"')
    monkeypatch.chdir(main)
    assert named(main, {**launch, "PATH": f".::{launch['PATH']}"}).path == str(main)
    assert not ran.exists()
    subprocess.run([program], check=True)
    assert ran.exists()


def test_nothing_from_the_repository_configuration_is_run(tmp_path: Path, launch: dict[str, str]) -> None:
    main = checkout(tmp_path / "main")
    ran = tmp_path / "ran"
    program = script(tmp_path / "program", f'touch "{ran}"')
    for key in ("core.fsmonitor", "core.pager", "core.sshCommand", "alias.rev-parse", "alias.config"):
        git(main, "config", key, f"!{program}" if key.startswith("alias") else str(program))
    assert named(main, launch).path == str(main)
    assert not ran.exists()
    git(main, "status")
    assert ran.exists()


# Leaked variables


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("GIT_DIR", "decoy/.git"),
        ("GIT_DIR", "../decoy/.git"),
        ("GIT_DIR", "missing"),
        ("GIT_COMMON_DIR", "decoy/.git"),
        ("GIT_WORK_TREE", "decoy"),
        ("GIT_WORK_TREE", "missing"),
    ],
)
@pytest.mark.parametrize("place", ["main", "plain"])
def test_variable_that_names_another_repository_is_a_conflict_unless_the_folder_was_named(
    place: str, variable: str, value: str, tmp_path: Path, launch: dict[str, str]
) -> None:
    checkout(tmp_path / "main")
    (tmp_path / "plain").mkdir()
    decoy = checkout(tmp_path / "decoy")
    before = listing(decoy)
    folder = tmp_path / place
    leaky = {**launch, variable: value if value.startswith("..") else str(tmp_path / value)}
    line = refusal(Conflict, folder, leaky, explicit=False)
    assert f"Unset {variable}" in line
    assert "--workspace" in line
    assert named(folder, leaky).path == str(folder)
    assert listing(decoy) == before
    assert resolve(folder, environment=launch, explicit=False).path == str(folder)


@pytest.mark.parametrize(
    ("place", "variable", "value"),
    [
        ("main", "GIT_DIR", ".git"),
        ("main", "GIT_DIR", "{0}/main/.git"),
        ("main", "GIT_DIR", "{0}/main/.git/worktrees/tree"),
        ("main", "GIT_DIR", "{0}/alias/.git"),
        ("main", "GIT_DIR", ""),
        ("main", "GIT_COMMON_DIR", ".git"),
        ("main", "GIT_WORK_TREE", "."),
        ("main", "GIT_WORK_TREE", "{0}/tree"),
        ("main", "GIT_INDEX_FILE", "{0}/decoy/.git/index"),
        ("main/deep", "GIT_DIR", "../.git"),
        ("main/deep", "GIT_WORK_TREE", ".."),
        ("tree", "GIT_DIR", ".git"),
        ("tree", "GIT_DIR", "{0}/main/.git"),
        ("tree", "GIT_DIR", "{0}/main/.git/worktrees/other"),
        ("tree", "GIT_DIR", "{0}/other/.git"),
        ("tree", "GIT_COMMON_DIR", "{0}/main/.git"),
        ("tree", "GIT_WORK_TREE", "{0}/main"),
        ("tree", "GIT_WORK_TREE", "{0}/other"),
    ],
)
def test_variable_that_names_the_same_repository_is_fine(
    place: str, variable: str, value: str, tmp_path: Path, launch: dict[str, str]
) -> None:
    main = checkout(tmp_path / "main")
    (main / "deep").mkdir()
    (tmp_path / "alias").symlink_to(main)
    checkout(tmp_path / "decoy")
    linked(main, tmp_path / "tree")
    linked(main, tmp_path / "other")
    leaky = {**launch, variable: value.format(tmp_path)}
    assert resolve(tmp_path / place, environment=leaky, explicit=False).path == str(main)


@pytest.mark.parametrize(
    ("variable", "value"), [("GIT_DIR", "main/.git"), ("GIT_DIR", "kept.git"), ("GIT_WORK_TREE", "main")]
)
def test_variable_that_names_a_checkout_with_a_separate_git_directory_is_fine(
    variable: str, value: str, tmp_path: Path, launch: dict[str, str]
) -> None:
    main = checkout(tmp_path / "main")
    git(main, "init", "--quiet", "--separate-git-dir", str(tmp_path / "kept.git"))
    leaky = {**launch, variable: str(tmp_path / value)}
    assert resolve(main, environment=leaky, explicit=False).path == str(tmp_path / "kept.git")
    refusal(Conflict, main, {**launch, variable: str(tmp_path)}, explicit=False)


def test_work_tree_variable_that_names_the_plain_folder_itself_is_fine(tmp_path: Path, launch: dict[str, str]) -> None:
    leaky = {**launch, "GIT_WORK_TREE": str(tmp_path)}
    assert resolve(tmp_path, environment=leaky, explicit=False).path == str(tmp_path)


@pytest.mark.parametrize("variable", ["GIT_DIR", "GIT_WORK_TREE"])
def test_entry_of_a_work_tree_that_is_gone_lets_nothing_else_pass(
    variable: str, tmp_path: Path, launch: dict[str, str]
) -> None:
    main = checkout(tmp_path / "main")
    shutil.rmtree(linked(main, tmp_path / "tree"))
    refusal(Conflict, main, {**launch, variable: str(tmp_path / "missing")}, explicit=False)
    assert resolve(main, environment=launch, explicit=False).path == str(main)


def test_hook_of_the_superproject_does_not_pass_for_the_submodule(tmp_path: Path, launch: dict[str, str]) -> None:
    main = superproject(tmp_path / "super")
    leaky = {**launch, "GIT_DIR": str(main / ".git")}
    refusal(Conflict, main / "part", leaky, explicit=False)
    assert resolve(main, environment=leaky, explicit=False).path == str(main)
    leaky = {**launch, "GIT_DIR": str(main / ".git" / "modules" / "part")}
    assert resolve(main / "part", environment=leaky, explicit=False).path == str(main / "part")

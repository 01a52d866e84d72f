"""Which project a folder belongs to. Knows paths, file systems and what git answers about a repository.

Must not read the process's environment, the clock or the home directory: callers pass in what they were launched with.
A project is the canonical main checkout, so linked work trees share one and submodules and clones have their own;
outside Git it is the canonical folder. An identity that is broken or ambiguous is an error, never a guess.
"""

import os
import shutil
import signal
import subprocess
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keepwell.model.errors import Conflict, Corrupt, Denied, Invalid, KeepwellError, Unsupported
from keepwell.model.scope import Project

GIT_SECONDS: Final = 5
"""How long one question to git may take, in seconds, before the launch is refused."""

_OTHER_FOLDER: Final = "name another folder with --workspace."


@dataclass(frozen=True, slots=True)
class _Marker:
    """What makes `holder` a repository: its `.git`, or `holder` itself when that is a git directory."""

    holder: Path
    path: Path


@dataclass(frozen=True, slots=True)
class _Repository:
    """One repository as seen from one folder: its own git directory, and the one all its work trees share."""

    marker: _Marker
    directory: Path
    common: Path


@dataclass(frozen=True, slots=True)
class _Git:
    """The git binary, asked from one folder in a clean environment."""

    binary: str
    environment: Mapping[str, str]
    folder: Path

    def answer(self, *question: str) -> subprocess.CompletedProcess[str]:
        """Exit status, answer and complaint of `git <question>`; Unsupported when it cannot run or does not end."""
        try:
            process = subprocess.Popen(
                [self.binary, *question],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="surrogateescape",
                start_new_session=True,
            )
        except OSError as problem:
            raise Unsupported(
                "Git could not be started, so the repository of the working folder cannot be identified.",
                hint="Make `git --version` work in this environment.",
                binary=self.binary,
                reason=str(problem),
            ) from problem
        with process:
            output, complaint = _finish(process, self.binary)
        return subprocess.CompletedProcess(question, process.returncode, output, complaint)


def resolve(folder: Path, *, environment: Mapping[str, str], explicit: bool) -> Project:
    """The project that `folder` belongs to.

    `environment` is the one keepwell was launched with: git is found on its PATH, and unless the user named the folder
    (`explicit`), a GIT_DIR, GIT_COMMON_DIR or GIT_WORK_TREE in it that names another repository is a Conflict.

    Invalid: the folder is missing or its project's path is not text. Denied: the operating system or git refuses to
    read it. Unsupported: git is missing or hangs, or the folder is a bare repository. Corrupt: a broken repository.
    """
    here = _existing(folder)
    try:
        marker = _nearest_marker(here)
        repository = _repository(marker, environment) if marker else None
        project = _project(here, repository, environment)
        if not explicit:
            _refuse_leaks(folder, project, repository=repository, environment=environment)
    except OSError as problem:
        raise _unreadable(folder, problem) from problem
    return project


def spelling(name: str, listing: Iterable[str], *, same: Callable[[str], bool]) -> str:
    """How a folder with the entries `listing` itself spells `name`; `same` tells whether an entry is that very file.

    An exact entry wins. Otherwise the entry that differs only in case or Unicode normalisation and is the same file,
    which happens only where the file system ignores such differences. Else `name` as it was given.
    """
    folded = _folded(name)
    alike = []
    for entry in listing:
        if entry == name:
            return name
        if _folded(entry) == folded:
            alike.append(entry)
    return next((entry for entry in alike if same(entry)), name)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def _existing(folder: Path) -> Path:
    if "\0" in str(folder):
        raise Invalid("The workspace holds a NUL character.", hint="Pass the path of an existing folder.")
    try:
        here = _canonical(folder)
    except PermissionError as problem:
        raise _unreadable(folder, problem) from problem
    except (OSError, RuntimeError) as problem:  # Python 3.11 and 3.12 raise RuntimeError for a loop of symbolic links
        raise Invalid(
            "The workspace does not exist.",
            hint="Pass the path of an existing folder.",
            folder=str(folder),
            reason=str(problem),
        ) from problem
    if not here.is_dir():
        raise Invalid("The workspace is not a folder.", hint="Pass the path of a folder.", folder=str(folder))
    return here


def _unreadable(folder: Path, problem: OSError) -> Denied:
    return Denied(
        "The operating system refuses to read the workspace.",
        hint="Give this user access to the folder and its parents, or " + _OTHER_FOLDER,
        folder=str(folder),
        reason=str(problem),
    )


def _canonical(path: Path) -> Path:
    """The one spelling of an existing path; OSError or RuntimeError when it does not lead anywhere."""
    real = path.resolve(strict=True)
    spelled = Path(real.anchor)
    for name in real.parts[1:]:
        spelled /= _listed(spelled, name)
    return spelled


def _listed(parent: Path, name: str) -> str:
    """`name` as `parent` lists it."""
    # A large folder is listed only where the spelling can be in doubt: an ASCII name whose other case is not there
    # was matched exactly.
    if name.isascii() and (name.swapcase() == name or not _present(parent / name.swapcase())):
        return name
    try:
        listing = [entry.name for entry in parent.iterdir()]
    except PermissionError:  # a parent that may be passed but not listed, as /home often is
        return name
    return spelling(name, listing, same=lambda entry: (parent / entry).samefile(parent / name))


def _present(path: Path) -> bool:
    """Whether there is an entry, even a dangling link. Unlike Path.exists, no access is an error and not a no."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _nearest_marker(here: Path) -> _Marker | None:
    for holder in (here, *here.parents):
        if _present(holder / ".git"):
            return _Marker(holder, holder / ".git")
        if all(_present(holder / entry) for entry in ("HEAD", "objects", "refs")):
            return _Marker(holder, holder)
    return None


def _repository(marker: _Marker, environment: Mapping[str, str]) -> _Repository:
    """What git says about the repository of `marker`; an error when it speaks about another one."""
    git = _git(marker.holder, environment)
    common = _located(git, "--git-common-dir", marker=marker)
    if common == _led_to(marker.path):
        return _Repository(marker, common, common)
    directory = _located(git, "--absolute-git-dir", marker=marker)
    # Git passes over a `.git` that is no repository and answers for the next one further up.
    if directory != _led_to(Path(_told(git, "rev-parse", "--resolve-git-dir", str(marker.path), marker=marker))):
        raise _broken(marker, "git passes over it and finds an outer repository")
    return _Repository(marker, directory, common)


def _led_to(path: Path) -> Path | None:
    try:
        return _canonical(path)
    except (OSError, RuntimeError, ValueError):
        return None


def _git(folder: Path, environment: Mapping[str, str]) -> _Git:
    clean = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    # A relative entry of PATH would let the repository bring the git that is asked about it.
    places = [place for place in environment.get("PATH", "").split(os.pathsep) if Path(place).is_absolute()]
    binary = shutil.which("git", path=os.pathsep.join(places))
    if binary is None:
        raise Unsupported(
            "Git is not on PATH, so the repository of the working folder cannot be identified.",
            hint="Install git, or start keepwell with a PATH that holds it.",
            folder=str(folder),
        )
    return _Git(binary, {**clean, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}, folder)


def _finish(process: subprocess.Popen[str], binary: str) -> tuple[str, str]:
    try:
        return process.communicate(timeout=GIT_SECONDS)
    except subprocess.TimeoutExpired as problem:
        raise Unsupported(
            f"Git did not answer within {GIT_SECONDS} seconds, so the repository cannot be identified.",
            hint="Find out why `git rev-parse` hangs in the working folder, or " + _OTHER_FOLDER,
            binary=binary,
        ) from problem
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)


def _told(git: _Git, *question: str, marker: _Marker) -> str:
    """Git's answer without the newline it adds. Names may hold newlines too, so one command asks one thing."""
    answer = git.answer(*question)
    if answer.returncode:
        raise _refusal(marker, answer.stderr.strip())
    return answer.stdout.removesuffix("\n")


def _located(git: _Git, question: str, *, marker: _Marker) -> Path:
    path = marker.holder / _told(git, "rev-parse", question, marker=marker)
    found = _led_to(path)
    if found is None:
        raise _broken(marker, f"git names a folder that is not there: {path}")
    return found


def _refusal(marker: _Marker, complaint: str) -> KeepwellError:
    if "dubious ownership" in complaint or "unsafe repository" in complaint:
        return Denied(
            "Git refuses this repository because another user owns it (dubious ownership).",
            hint="If you trust it, add it to safe.directory in your git configuration, or " + _OTHER_FOLDER,
            folder=str(marker.holder),
            reason=complaint,
        )
    if "repository version" in complaint or "repository extension" in complaint:
        return Unsupported(
            "This repository has a format that the installed git does not know.",
            hint="Install a newer git.",
            folder=str(marker.holder),
            reason=complaint,
        )
    return _broken(marker, complaint)


def _broken(marker: _Marker, reason: str) -> Corrupt:
    what = "git directory" if marker.path == marker.holder else ".git file" if marker.path.is_file() else ".git folder"
    return Corrupt(
        f"The repository of the working folder is broken: its {what} leads to no repository that git can read.",
        hint="Repair it (`git worktree repair` mends a work tree after a move), or " + _OTHER_FOLDER,
        folder=str(marker.holder),
        reason=reason,
    )


def _project(here: Path, repository: _Repository | None, environment: Mapping[str, str]) -> Project:
    identity = _identity(repository, environment) if repository else here
    if not _is_text(identity):
        raise Invalid(
            "The project's path is not valid UTF-8.",
            hint="Rename the folder, or " + _OTHER_FOLDER,
            path=ascii(str(identity)),
        )
    shared = repository is not None and identity == repository.common
    return Project(str(identity), _name(identity, git_directory=shared), identity.stat().st_ino)


def _is_text(path: Path) -> bool:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _name(identity: Path, *, git_directory: bool) -> str:
    if not git_directory:
        return identity.name or str(identity)
    # `project/.bare` beside its linked work trees is a common layout, and `.bare` names nothing.
    if identity.name.startswith("."):
        return _name(identity.parent, git_directory=False)
    return identity.name.removesuffix(".git")


def _identity(repository: _Repository, environment: Mapping[str, str]) -> Path:
    """The main checkout, or the shared git directory where there is none beside it."""
    marker, common = repository.marker, repository.common
    git = _git(marker.holder, environment)
    configured = _configured_work_tree(git, repository)
    if configured is not None:
        checkout = _led_to(common / configured)
        if checkout is None:
            raise _broken(marker, f"core.worktree names a folder that is not there: {configured}")
        return checkout
    if common.name == ".git":
        return common.parent
    if marker.path == marker.holder and _told(git, "rev-parse", "--is-bare-repository", marker=marker) == "true":
        raise Unsupported(
            "The working folder is a bare repository, which has no checkout to keep memory for.",
            hint="Start in one of its work trees, or " + _OTHER_FOLDER,
            folder=str(marker.holder),
        )
    return common


def _configured_work_tree(git: _Git, repository: _Repository) -> str | None:
    """`core.worktree` of the shared directory, read as git reads it: these files only, and no included ones."""
    shared, own = repository.common / "config", repository.common / "config.worktree"
    if _present(own) and _setting(git, shared, "extensions.worktreeConfig", kind="bool", of=repository) == "true":
        value = _setting(git, own, "core.worktree", of=repository)
        if value is not None:
            return value
    return _setting(git, shared, "core.worktree", of=repository)


def _setting(git: _Git, file: Path, key: str, *, of: _Repository, kind: str | None = None) -> str | None:
    typed = [f"--type={kind}"] if kind else []
    answer = git.answer("config", "--file", str(file), "--null", *typed, "--get", key)
    if answer.returncode == 1:  # git's way to say that the key is not set
        return None
    if answer.returncode:
        raise _refusal(of.marker, answer.stderr.strip())
    return answer.stdout.removesuffix("\0")


def _refuse_leaks(
    folder: Path, project: Project, *, repository: _Repository | None, environment: Mapping[str, str]
) -> None:
    """Conflict when a variable that git obeys names another repository than the folder does.

    Only paths are compared: no git runs with these variables, so the repository they name is left alone.
    """
    for variable in ("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE"):
        value = environment.get(variable)
        if not value:  # an empty variable names no repository
            continue
        named = _led_to(folder / value)
        if named is None or named not in _own_places(variable, project, repository):
            raise Conflict(
                f"{variable} names another repository than the working folder, so the project is ambiguous.",
                hint=f"Unset {variable}, or name the folder with --workspace.",
                folder=str(folder),
                value=value,
            )


def _own_places(variable: str, project: Project, repository: _Repository | None) -> set[Path | None]:
    """The canonical paths that `variable` may name without leaving the project."""
    main = Path(project.path)
    if repository is None:
        return {main} if variable == "GIT_WORK_TREE" else set()
    if variable == "GIT_COMMON_DIR":
        return {repository.common}
    entries = [file.parent for file in repository.common.glob("worktrees/*/gitdir")]
    links = [repository.marker.holder / ".git", main / ".git", *map(_link, entries)]
    if variable == "GIT_DIR":
        return {repository.directory, repository.common, *map(_led_to, [*entries, *links])}
    return {_led_to(link.parent) for link in links}


def _link(entry: Path) -> Path:
    """The `.git` file of the linked work tree that the shared directory keeps `entry` for."""
    # Git before 2.48 writes an absolute path here, later ones may write one relative to the entry.
    return entry / (entry / "gitdir").read_text(encoding="utf-8", errors="surrogateescape").removesuffix("\n")

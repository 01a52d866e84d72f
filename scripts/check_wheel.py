"""Checks a built wheel: it carries every file of the package, and installed alone it runs."""

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"


def missing(wheel: Path) -> set[str]:
    """The files of the package that the wheel lacks."""
    files = {
        str(file.relative_to(SOURCE))
        for file in (SOURCE / "keepwell").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    return files - set(zipfile.ZipFile(wheel).namelist())


def main() -> None:
    """Check the wheel that is named; end with a sentence and status 1 when it is not whole."""
    wheel = Path(sys.argv[1])
    if lacking := missing(wheel):
        sys.exit(f"{wheel.name} lacks {', '.join(sorted(lacking))}.")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        scripts = Path(folder) / "bin"
        subprocess.run([scripts / "pip", "install", "--quiet", "--disable-pip-version-check", wheel], check=True)
        environment = {"HOME": folder, "PATH": "/usr/bin:/bin"}
        for words in (["--version"], ["add", "It works.", "--evidence", "Seen."], ["search", "works"], ["status"]):
            subprocess.run([scripts / "keepwell", *words], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main()

"""The command `keepwell`: `python -m keepwell` and the installed script start here."""

import sys


def main() -> None:
    """Run a command, or the server, and end the process with its exit status."""
    # before anything else is opened: a database must never get a standard stream's number
    from keepwell.surfaces.standard_files import ensure_standard_files  # noqa: PLC0415

    ensure_standard_files()
    from keepwell.surfaces.cli import run  # noqa: PLC0415

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()

"""On which kind of file system a folder lies, and whether SQLite's write-ahead log can work there."""

from pathlib import Path
from typing import Final

SHARED: Final = frozenset(
    {
        "9p", "afs", "ceph", "cifs", "davfs", "fuse.davfs2", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs",
        "fuse.vmhgfs-fuse", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "prl_fs", "smb2", "smb3",
        "smbfs", "vboxsf", "virtiofs", "vmhgfs",
    }
)  # fmt: skip
"""File systems shared over a network or into a virtual machine: their shared memory and locks cannot be relied on."""


def file_system_of(folder: Path, *, mount_table: Path = Path("/proc/self/mountinfo")) -> str | None:
    """The type of the file system that holds `folder`, or None where the system does not tell (proc(5), mountinfo)."""
    try:
        lines = mount_table.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    best, kind = "", None
    for line in lines:
        mount_point, file_system = _parsed(line)
        # a later line for the same place hides the earlier one
        if len(mount_point) >= len(best) and folder.is_relative_to(mount_point):
            best, kind = mount_point, file_system
    return kind


def _parsed(line: str) -> tuple[str, str]:
    left, _, right = line.partition(" - ")
    mount_point = left.split(" ")[4].encode("utf-8", "surrogateescape").decode("unicode_escape")
    return mount_point, right.split(" ")[0]

"""Folders on a local disk: made with a clear error, and which errors mean that a disk is full."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from orchestrator.errors import BackendMisconfigured

DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})  # EFBIG: the process's own file size limit
NO_ROOM = "there is no room left where this server keeps its data: try again later"  # what a caller is told
JOBS_GO_ON = "then jobs go on by themselves"  # the end of a service's remedy

MOUNT_TABLE = Path("/proc/self/mountinfo")
NETWORK_FILE_SYSTEMS = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "ncpfs", "afs", "9p", "ceph", "lustre", "beegfs", "gpfs", "davfs")
)
_NETWORK_FUSE = ("sshfs", "glusterfs", "s3fs", "rclone", "davfs", "gcsfuse", "ceph", "juicefs", "nfs", "smb")


def make_folder(folder: Path) -> Path:
    """Make the folder and its parents. Raises BackendMisconfigured, naming what stands in the way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BackendMisconfigured(
            f"cannot make the folder {folder} ({error.strerror}): choose another one that can be written to"
        ) from error
    return folder


def low_on_space(folder: Path, least_bytes: int) -> bool:
    """Whether the folder's file system has fewer bytes left than that; False where it does not say."""
    try:
        free = os.statvfs(folder)
    except OSError:
        return False
    return free.f_blocks > 0 and free.f_bavail * free.f_frsize < least_bytes


def is_network(file_system: str) -> bool:
    """Whether a file system type of /proc/self/mountinfo lives on another machine."""
    if file_system.startswith("fuse."):
        return any(name in file_system for name in _NETWORK_FUSE)
    return file_system in NETWORK_FILE_SYSTEMS


def file_system_of(path: Path, mountinfo: str) -> str:
    """The type of the file system that holds an absolute path; "" if the table does not say.

    `mountinfo` is the text of /proc/self/mountinfo: the deepest mount wins, of equal ones the last.
    """
    found, depth = "", -1
    for line in mountinfo.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split()
        if not separator or len(fields) < 5:
            continue
        mount = Path(_unescaped(fields[4]))
        if path.is_relative_to(mount) and len(mount.parts) >= depth:
            found, depth = after.split()[0], len(mount.parts)
    return found


def refuse_network(path: Path) -> None:
    """Raise BackendMisconfigured if the path is on a network file system, where SQLite's locks do not hold."""
    try:
        mountinfo = MOUNT_TABLE.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:  # no such table on this system
        return
    file_system = file_system_of(path.resolve(), mountinfo)
    if is_network(file_system):
        raise BackendMisconfigured(
            f"{path} is on a network file system ({file_system}), where SQLite can lose data: "
            "choose a folder on a local disk"
        )


def _unescaped(field: str) -> str:
    """mountinfo writes space, tab, newline and backslash as octal escapes."""
    for escape, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(escape, character)
    return field

"""Where a journal may lie, read from a table of mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import BackendMisconfigured
from storage import folders
from storage.folders import file_system_of, is_network, low_on_space, make_folder, refuse_network

MOUNTS = """\
22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw
30 22 0:30 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 254:2 / /home/me/local rw - xfs /dev/vdb rw
32 22 0:32 / /mnt/my\\040share rw - cifs //server/share rw
33 22 0:33 / /data rw - ext4 /dev/vdc rw
34 22 0:34 / /data rw - fuse.sshfs me@host: rw
not a mount
35 22 0:35 / /tmp rw master:1 - tmpfs tmpfs rw
"""


@pytest.mark.parametrize(
    ("path", "file_system"),
    [
        ("/", "ext4"),
        ("/srv/out", "ext4"),
        ("/home/me/out", "nfs4"),
        ("/home/me/local/out", "xfs"),
        ("/homework", "ext4"),
        ("/mnt/my share/out", "cifs"),
        ("/data/out", "fuse.sshfs"),
        ("/tmp/out", "tmpfs"),
    ],
)
def test_the_deepest_and_latest_mount_holds_a_path(path: str, file_system: str) -> None:
    assert file_system_of(Path(path), MOUNTS) == file_system


def test_a_table_that_says_nothing_names_no_file_system() -> None:
    assert file_system_of(Path("/home"), "") == ""


@pytest.mark.parametrize(
    "name", ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "fuse.sshfs", "fuse.s3fs"]
)
def test_file_systems_of_other_machines_are_known(name: str) -> None:
    assert is_network(name)


@pytest.mark.parametrize(
    "name", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "virtiofs", "fuseblk", ""]
)
def test_local_file_systems_are_not_taken_for_others(name: str) -> None:
    assert not is_network(name)


def test_a_network_file_system_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "mountinfo"
    table.write_text(f"22 1 254:1 / / rw - ext4 /dev/vda1 rw\n30 22 0:30 / {tmp_path} rw - nfs4 server:/ rw\n")
    monkeypatch.setattr(folders, "MOUNT_TABLE", table)
    with pytest.raises(
        BackendMisconfigured, match=r"network file system \(nfs4\).*choose a folder on a local disk"
    ):
        refuse_network(tmp_path / "out")


def test_a_system_without_a_table_of_mounts_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "MOUNT_TABLE", tmp_path / "none")
    refuse_network(tmp_path)


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    for folder in (tmp_path / "out", tmp_path / "out" / "deeper"):
        with pytest.raises(BackendMisconfigured, match=f"cannot make the folder {folder}"):
            make_folder(folder)


def test_space_is_measured_where_the_system_tells(tmp_path: Path) -> None:
    assert not low_on_space(tmp_path, 1)
    assert low_on_space(tmp_path, 2**62)
    assert not low_on_space(tmp_path / "none", 2**62)

"""Artifacts in a bucket of S3, or of a server that speaks its protocol, with copies in a local folder.

A key has the same form as in a local folder, and lies at `<prefix>/<key>`. S3 writes an object whole or not at
all; what is read is checked against its key. Endpoint and credentials come from the standard AWS variables
(AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, …) and are never repeated in a message.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import fsspec

from orchestrator.errors import BackendMisconfigured, BackendUnavailable, CliploopError, JobWaiting
from orchestrator.records import ArtifactKey
from storage.artifacts import ArtifactDamaged, ArtifactMissing, StoredFile, checked, is_key, key_of
from storage.copies import MOST_BYTES, Copies

CONNECT_SECONDS = 5
READ_SECONDS = 30  # between bytes
TRIES = 4  # over a few seconds; a fault of the server's is no reason to lose a clip
LISTED_AT_ONCE = DELETED_AT_ONCE = 1000  # as many as S3 takes
_ADDRESS = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>[A-Za-z0-9/_.=+-]*))?")
_ONE_REQUEST = 2**31  # an object up to twice this goes in one request: nothing half-sent stays in the bucket
_REFUSED = ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound")
_BAD_ADDRESS = ("ParamValidationError", "InvalidRegionError", "NoRegionError", "ValueError")
_BAD_CODES = ("NoSuchBucket", "InvalidBucketName", "PermanentRedirect", "301", "AuthorizationHeaderMalformed")


class S3Artifacts:
    """Artifacts at `s3://bucket/prefix`; `copies` is a folder on this machine. Implements the port of artifacts.

    Everything raises BackendUnavailable while S3 cannot be reached, and BackendMisconfigured where the bucket is
    not there, or refuses us; `s3fs` is imported here, not before. Processes and machines may share a bucket.
    """

    def __init__(self, url: str, copies: Path, *, copied_bytes: int = MOST_BYTES) -> None:
        bucket, prefix = _address(url)
        self.where = f"s3://{bucket}/{prefix}".rstrip("/")
        self._bucket, self._prefix = bucket, f"{prefix}/" if prefix else ""
        self._s3 = _file_system()
        self.copies = Copies(copies, copied_bytes)
        self.check()

    def check(self) -> None:
        """Raise BackendUnavailable or BackendMisconfigured if the bucket cannot be used now."""
        with self._translated():
            self._s3.call_s3("head_bucket", Bucket=self._bucket)

    def put(self, data: bytes, suffix: str) -> ArtifactKey:
        """Store and return the key. What is there already is written again, which repairs a damaged one."""
        key = key_of(data, suffix)
        with self._translated():
            self._s3.pipe_file(self._at(key), bytes(data), chunksize=_ONE_REQUEST)
        with contextlib.suppress(JobWaiting):  # it is stored; without a copy it is fetched again
            self.copies.keep(data, suffix)
        return key

    def read(self, key: ArtifactKey) -> bytes:
        """The content. Raises ArtifactMissing, ArtifactDamaged."""
        copy = self.copies.find(checked(key))
        if copy is not None:
            with contextlib.suppress(FileNotFoundError):
                return copy.read_bytes()
        data = self._fetched(key)
        with contextlib.suppress(JobWaiting):
            self.copies.keep(data, key[64:])
        return data

    def path(self, key: ArtifactKey) -> Path:
        """A copy on this machine. Raises ArtifactMissing, ArtifactDamaged, JobWaiting(disk)."""
        return self.copies.find(checked(key)) or self.copies.keep(self._fetched(key), key[64:])

    def stored(self, page: int = LISTED_AT_ONCE) -> Iterator[StoredFile]:
        """Every artifact in the bucket, asked for page by page: a large one takes a while."""
        asked: dict[str, Any] = {"Bucket": self._bucket, "Prefix": self._prefix, "MaxKeys": page}
        while True:
            with self._translated():
                answer = self._s3.call_s3("list_objects_v2", **asked)
            for found in answer.get("Contents", []):
                name = found["Key"].removeprefix(self._prefix)
                if is_key(name):
                    yield StoredFile(name, int(found["Size"]), found["LastModified"].timestamp())
            if not answer.get("IsTruncated"):
                return
            asked["ContinuationToken"] = answer["NextContinuationToken"]

    def remove(self, keys: Sequence[ArtifactKey]) -> None:
        """Remove these for good, and their copies here; what is not there is no error."""
        for first in range(0, len(keys), DELETED_AT_ONCE):
            objects = [{"Key": self._prefix + checked(key)} for key in keys[first : first + DELETED_AT_ONCE]]
            with self._translated():
                done = self._s3.call_s3(
                    "delete_objects", Bucket=self._bucket, Delete={"Objects": objects, "Quiet": True}
                )
            for refused in done.get("Errors", []):
                raise self._refused(str(refused.get("Code")))
        self.copies.drop(keys)

    def clean(self, *, dry: bool = False) -> tuple[int, int]:
        """Of the copies here: see LocalArtifacts. In the bucket nothing is ever half-written."""
        return self.copies.clean(dry=dry)

    def close(self) -> None:
        """Give back the connections."""
        self._s3.close_session(self._s3.loop, self._s3._s3creator)

    def _fetched(self, key: ArtifactKey) -> bytes:
        with self._translated(key):
            data = cast("bytes", self._s3.cat_file(self._at(key)))
        if hashlib.sha256(data).hexdigest() != key[:64]:
            raise ArtifactDamaged(
                f"{self.where}/{key} is damaged, its content has changed: bring the object back"
            )
        return data

    def _at(self, key: ArtifactKey) -> str:
        return f"{self._bucket}/{self._prefix}{key}"

    @contextlib.contextmanager
    def _translated(self, key: ArtifactKey = "") -> Generator[None]:
        """Turn the library's errors into ours. Theirs name the endpoint, so they are not repeated."""
        try:
            yield
        except (CliploopError, MemoryError, NotImplementedError):
            raise
        except Exception as error:
            raise self._ours(error, key) from None

    def _ours(self, error: Exception, key: ArtifactKey) -> CliploopError:
        response: Any = getattr(error, "response", None) or getattr(error.__cause__, "response", None)
        code = str(response["Error"].get("Code", "")) if response else ""
        kind = code or type(error).__name__
        operation = str(getattr(error.__cause__ or error, "operation_name", ""))
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if kinds.intersection(_REFUSED):
            return BackendMisconfigured(
                f"no credentials for {self.where}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        if (
            code in _BAD_CODES
            or kinds.intersection(_BAD_ADDRESS)
            or (operation == "HeadBucket" and code == "404")
        ):
            return BackendMisconfigured(
                f"there is no bucket {self._bucket!r} at this endpoint and region ({kind}): create it, or "
                "correct CLIPLOOP_ARTIFACTS_URL, AWS_ENDPOINT_URL or AWS_DEFAULT_REGION"
            )
        if isinstance(error, FileNotFoundError):
            return ArtifactMissing(f"artifact {key} is not in {self.where}: bring the object back")
        if isinstance(error, PermissionError):
            return self._refused(code)
        return BackendUnavailable(
            f"{self.where} cannot be reached now ({kind})",
            outside="the store of files cannot be reached now: try again later",
        )

    def _refused(self, code: str) -> BackendMisconfigured:
        return BackendMisconfigured(
            f"{self.where} refuses us ({code}): check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may "
            "do (list the bucket; get, put and delete its objects)"
        )


def _address(url: str) -> tuple[str, str]:
    """Bucket and prefix. Raises BackendMisconfigured; what was given may hold a secret and is not repeated."""
    found = _ADDRESS.fullmatch(url)
    prefix = (found["prefix"] or "").strip("/") if found else ""
    if found is None or "//" in prefix or ".." in prefix.split("/"):
        raise BackendMisconfigured(
            "CLIPLOOP_ARTIFACTS_URL must be written s3://bucket or s3://bucket/prefix; "
            "endpoint and credentials belong into AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    return found["bucket"], prefix


def _file_system() -> Any:
    try:
        made = cast("Any", fsspec).filesystem(
            "s3",
            skip_instance_cache=True,
            use_listings_cache=False,
            config_kwargs={
                "connect_timeout": CONNECT_SECONDS,
                "read_timeout": READ_SECONDS,
                "retries": {"mode": "standard", "total_max_attempts": TRIES},
            },
        )
    except ImportError as error:
        raise BackendMisconfigured("artifacts in S3 need s3fs: pip install 'cliploop[s3]'") from error
    made.retries = 1  # its own tries would multiply those, and know fewer reasons
    return made

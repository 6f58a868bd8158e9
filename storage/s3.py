"""Artifacts in a bucket of S3, or of a server that speaks its protocol, with copies in a local folder.

A key has the same form as in a local folder, and lies at `<prefix>/<key>`. S3 writes an object whole or not at
all; what is read is checked against its key. Endpoint and credentials come from the standard AWS variables
(AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, …) and are never repeated in a message.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import fsspec
from fsspec import asyn

from orchestrator.errors import BackendMisconfigured, BackendUnavailable, CliploopError, JobWaiting
from orchestrator.records import ArtifactKey
from storage.artifacts import ArtifactDamaged, ArtifactMissing, StoredFile, StoreUnusable, checked, is_key, key_of
from storage.copies import MOST_BYTES, Copies
from storage.folders import JOBS_GO_ON

CONNECT_SECONDS = 3
CHECK_SECONDS = 3.0
SLOWEST_BYTES = 2**18  # a second, that a large object may take to be sent
TRIES = 4  # over a few seconds; a fault of the server's is no reason to lose a clip
LISTED_AT_ONCE = DELETED_AT_ONCE = 1000  # as many as S3 takes
_ADDRESS = re.compile(r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/(?P<prefix>[A-Za-z0-9/_.=+-]*))?")
_ONE_REQUEST = 2**31  # an object up to twice this goes in one request: nothing half-sent stays in the bucket
_REMEDY = f"bring the object back, {JOBS_GO_ON}"
_REFUSED = ("NoCredentialsError", "PartialCredentialsError", "CredentialRetrievalError", "ProfileNotFound")
_BAD_ADDRESS = ("ParamValidationError", "InvalidRegionError", "NoRegionError", "ValueError")
_BAD_CODES = ("NoSuchBucket", "InvalidBucketName", "PermanentRedirect", "301", "AuthorizationHeaderMalformed")


@dataclass(frozen=True)
class Pace:
    """How long S3 may take, in seconds: between bytes, and until its answer begins, with all tries."""

    read_seconds: float
    answer_seconds: float


PATIENT = Pace(30.0, 60.0)  # where a clip would be lost
HURRIED = Pace(10.0, 12.0)  # where somebody waits


class S3Artifacts:
    """Artifacts at `s3://bucket/prefix`; `copies` is a folder on this machine. Implements the port of artifacts.

    Everything raises BackendUnavailable while S3 cannot be reached, and BackendMisconfigured where the bucket is
    not there, or refuses us; `s3fs` is imported here, not before. Processes and machines may share a bucket.
    """

    def __init__(self, url: str, copies: Path, *, copied_bytes: int = MOST_BYTES, pace: Pace = PATIENT) -> None:
        bucket, prefix = _address(url)
        self.where = f"s3://{bucket}/{prefix}".rstrip("/")
        self._bucket, self._prefix = bucket, f"{prefix}/" if prefix else ""
        self._pace = pace
        self._s3 = _file_system(pace)
        self.copies = Copies(copies, copied_bytes)
        self.check(pace.answer_seconds)

    def check(self, seconds: float = CHECK_SECONDS) -> None:
        """Raise BackendUnavailable or BackendMisconfigured if the bucket cannot be used now."""
        with self._translated():
            self._done(self._s3._call_s3, "head_bucket", seconds=seconds, Bucket=self._bucket)

    def _done(self, call: Callable[..., Any], *given: Any, seconds: float, **named: Any) -> Any:
        """What it comes to in that time, its tries included. Raises TimeoutError, and the library's errors."""
        return cast("Any", asyn).sync(self._s3.loop, call, *given, timeout=seconds, **named)

    def put(self, data: bytes, suffix: str) -> ArtifactKey:
        """Store and return the key. What is there already is written again, which repairs a damaged one."""
        key = key_of(data, suffix)
        seconds = self._pace.answer_seconds + len(data) / SLOWEST_BYTES
        with self._translated():
            self._done(self._s3._pipe_file, self._at(key), bytes(data), chunksize=_ONE_REQUEST, seconds=seconds)
        self._copy(data, suffix)
        return key

    def read(self, key: ArtifactKey) -> bytes:
        """The content. Raises ArtifactMissing, ArtifactDamaged."""
        copy = self.copies.find(checked(key))
        if copy is not None:
            with contextlib.suppress(FileNotFoundError):
                return copy.read_bytes()
        data = self._fetched(key)
        self._copy(data, key[64:])
        return data

    def _copy(self, data: bytes, suffix: str) -> None:
        """Where there is room: without a copy it is fetched again."""
        with contextlib.suppress(JobWaiting, StoreUnusable, OSError):
            self.copies.keep(data, suffix)

    def path(self, key: ArtifactKey) -> Path:
        """A copy on this machine. Raises ArtifactMissing, ArtifactDamaged, JobWaiting(disk)."""
        return self.copies.find(checked(key)) or self.copies.keep(self._fetched(key), key[64:])

    def stored(self, page: int = LISTED_AT_ONCE) -> Iterator[StoredFile]:
        """Every artifact in the bucket, asked for page by page: a large one takes a while."""
        asked: dict[str, Any] = {"Bucket": self._bucket, "Prefix": self._prefix, "MaxKeys": page}
        while True:
            with self._translated():
                seconds = PATIENT.answer_seconds
                answer = self._done(self._s3._call_s3, "list_objects_v2", seconds=seconds, **asked)
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
                done = self._done(
                    self._s3._call_s3,
                    "delete_objects",
                    Bucket=self._bucket,
                    Delete={"Objects": objects, "Quiet": True},
                    seconds=PATIENT.answer_seconds,
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
            data = cast("bytes", cast("Any", asyn).sync(self._s3.loop, self._download, key))
        if hashlib.sha256(data).hexdigest() != key[:64]:
            raise ArtifactDamaged(f"{self.where}/{key} is damaged, its content has changed: {_REMEDY}")
        return data

    async def _download(self, key: ArtifactKey) -> bytes:
        """An answer must begin soon, and no pause between bytes be long; a large object may take its time."""
        asked = self._s3._call_s3("get_object", Bucket=self._bucket, Key=self._prefix + key)
        answer = await asyncio.wait_for(asked, self._pace.answer_seconds)
        async with answer["Body"] as body:
            return cast("bytes", await body.read())

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
        kind = code or ("no answer in time" if isinstance(error, TimeoutError) else type(error).__name__)
        operation = str(getattr(error.__cause__ or error, "operation_name", ""))
        kinds = {kind.__name__ for kind in type(error).__mro__}
        if kinds.intersection(_REFUSED):
            return StoreUnusable(
                f"no credentials for {self.where}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
            )
        if (
            code in _BAD_CODES
            or kinds.intersection(_BAD_ADDRESS)
            or (operation == "HeadBucket" and code == "404")
        ):
            return StoreUnusable(
                f"there is no bucket {self._bucket!r} at this endpoint and region ({kind}): create it, or "
                "correct CLIPLOOP_ARTIFACTS_URL, AWS_ENDPOINT_URL or AWS_DEFAULT_REGION"
            )
        if isinstance(error, FileNotFoundError):
            return ArtifactMissing(f"artifact {key} is not in {self.where}: {_REMEDY}")
        if isinstance(error, PermissionError):
            return self._refused(code)
        return BackendUnavailable(
            f"{self.where} cannot be reached now ({kind})",
            outside="the store of files cannot be reached now: try again later",
        )

    def _refused(self, code: str) -> StoreUnusable:
        return StoreUnusable(
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


def _file_system(pace: Pace) -> Any:
    try:
        made = cast("Any", fsspec).filesystem(
            "s3",
            skip_instance_cache=True,
            use_listings_cache=False,
            config_kwargs={
                "connect_timeout": CONNECT_SECONDS,
                "read_timeout": pace.read_seconds,
                "retries": {"mode": "standard", "total_max_attempts": TRIES},
            },
        )
    except ImportError as error:
        raise BackendMisconfigured("artifacts in S3 need s3fs: pip install 'cliploop[s3]'") from error
    made.retries = 1  # its own tries would multiply those, and know fewer reasons
    return made

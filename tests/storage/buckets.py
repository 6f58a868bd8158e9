"""A real S3 server on a loopback port, and new buckets on it."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Generator, Mapping
from typing import Any, cast

import pytest

BUCKETS = itertools.count()


@contextlib.contextmanager
def s3_server() -> Generator[Mapping[str, str]]:
    """Serve S3 while the block runs; the variables that lead to it."""
    from moto.server import ThreadedMotoServer

    server: Any = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "key-of-the-tests",
            "AWS_SECRET_ACCESS_KEY": "secret-of-the-tests",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }
    finally:
        server.stop()


def client(variables: Mapping[str, str]) -> Any:
    """Another client of that server, which is not ours."""
    import boto3

    return cast("Any", boto3).client(
        "s3",
        region_name=variables["AWS_DEFAULT_REGION"],
        endpoint_url=variables["AWS_ENDPOINT_URL"],
        aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
    )


def new_bucket(variables: Mapping[str, str]) -> str:
    """Make a bucket; its name."""
    name = f"bucket-{next(BUCKETS)}"
    client(variables).create_bucket(Bucket=name)
    return name


@contextlib.contextmanager
def environment_of(variables: Mapping[str, str]) -> Generator[None]:
    """The variables in this process's environment while the block runs."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in variables.items():
            environment.setenv(name, value)
        yield


NewBucket = Callable[[], str]

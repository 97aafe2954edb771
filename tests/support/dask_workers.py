"""Workers of dask on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import joblib
import pytest


@contextmanager
def workers_of_dask(*, processes: bool = True) -> Iterator[Any]:
    """Two of one thread in processes of their own, or threads of this one."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1 if processes else None,
            processes=processes,
            dashboard_address=":0",
        ) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        yield client

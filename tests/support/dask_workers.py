"""Workers of dask for joblib, on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager

import joblib
import pytest


@contextmanager
def workers_of_dask(*, processes: bool = True) -> Iterator[None]:
    """Two of one thread in processes of their own, or threads of this one."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1 if processes else None,
            processes=processes,
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster),
        joblib.parallel_config("dask"),
    ):
        yield

"""Workers of dask on this machine, and a model that kills one of them."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np
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


class KilledOnce:
    """A function whose process is killed at a row, unless there is a mark of it."""

    def __init__(self, folder: str, at: float) -> None:
        self.mark, self.at = Path(folder) / "killed", at  # its first column

    def __call__(self, table: Any) -> Any:
        points = np.asarray(table, dtype=float)
        if (points[:, 0] == self.at).any() and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return points[:, 0] ** 2 + np.sin(points[:, 1]) * points[:, 2]

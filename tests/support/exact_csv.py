"""CSV files, read so that every number is what was written."""

import warnings
from typing import Any

import pandas as pd


def read_csv(path: Any, **options: Any) -> pd.DataFrame:
    with warnings.catch_warnings():
        # exact in all versions of pandas; the newest does it without being told
        warnings.filterwarnings("ignore", message=".*float_precision")
        return pd.read_csv(path, float_precision="round_trip", **options)

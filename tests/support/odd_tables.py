"""Tables that nobody should be given: each has another kind of mistake."""

import io

import numpy as np
import pandas as pd
import scipy.sparse as sp


N, D = 6, 3
TABLE = np.random.default_rng(0).normal(size=(N, D))
NAMES = ["age", "bmi", "use"]


def odd_tables():
    """By name a function that makes one; generators are made anew for each call."""
    frame = pd.DataFrame(TABLE, columns=NAMES)

    def with_cells(*cells):
        return frame.assign(bmi=pd.Series([*cells] * N, dtype=object)[:N])

    made = {
        "sparse": lambda: sp.csr_matrix(TABLE),
        "sparse array": lambda: sp.coo_array(TABLE),
        "sparse frame": lambda: pd.DataFrame.sparse.from_spmatrix(sp.eye(N, D)),
        "0-d": lambda: np.array(3.0),
        "number": lambda: 3.0,
        "1-d": lambda: TABLE[0],
        "3-d": lambda: np.zeros((N, D, 2)),
        "ragged": lambda: [[1.0, 2.0], [3.0]],
        "ragged arrays": lambda: [TABLE[0], TABLE[1, :2]],
        "list": lambda: TABLE.tolist(),
        "empty list": list,
        "list of None": lambda: [None] * N,
        "no rows": lambda: TABLE[:0],
        "no columns": lambda: TABLE[:, :0],
        "empty frame": lambda: pd.DataFrame(),
        "frame without rows": lambda: frame[:0],
        "frame of lists": lambda: with_cells([1, 2], [3]),
        "frame of arrays": lambda: with_cells(np.ones(2), np.ones(3)),
        "frame of dicts": lambda: with_cells({"a": 1}),
        "frame of sets": lambda: with_cells({1}),
        "frame of None": lambda: with_cells(None),
        "frame of complex": lambda: frame.assign(bmi=1j),
        "frame of bytes": lambda: with_cells(b"a"),
        "frame of dates": lambda: frame.assign(bmi=pd.Timestamp("2020-01-01")),
        "frame of periods": lambda: frame.assign(
            bmi=pd.period_range("2020", periods=N, freq="D")
        ),
        "frame of intervals": lambda: frame.assign(
            bmi=pd.interval_range(0, N, periods=N)
        ),
        "frame of objects": lambda: with_cells(object()),
        "frame of infinities": lambda: frame.assign(bmi=np.inf),
        "frame of tuples": lambda: with_cells((1, 2)),
        "frame of frames": lambda: with_cells(frame),
        "column twice": lambda: frame.set_axis(["a", "a", "b"], axis=1),
        "columns of tuples": lambda: frame.set_axis(
            pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)]), axis=1
        ),
        "index of tuples": lambda: frame.set_axis(
            pd.MultiIndex.from_product([[0, 1], [0, 1, 2]])
        ),
        "generator": lambda: (row for row in TABLE),
        "map": lambda: map(list, TABLE),
        "text": lambda: "data.csv",
        "bytes": lambda: b"data",
        "file": lambda: io.StringIO("a,b\n1,2"),
        "None": lambda: None,
        "dict": lambda: dict(zip(NAMES, TABLE.T, strict=True)),
        "set": lambda: {1.0, 2.0},
        "objects": lambda: np.array([[object()] * D] * N),
        "None array": lambda: np.array([[None] * D] * N),
        "texts": lambda: np.array([["a"] * D] * N),
        "bytes array": lambda: np.array([[b"a"] * D] * N),
        "complex": lambda: TABLE + 1j,
        "dates": lambda: np.zeros((N, D), "datetime64[s]"),
        "masked": lambda: np.ma.masked_less(TABLE, 0.0),
        "masked nothing": lambda: np.ma.array(TABLE),
        "matrix": lambda: np.matrix(TABLE),
        "structured": lambda: np.array([(1.0, 2)] * N, [("a", float), ("b", int)]),
        "records": lambda: frame.to_records(),
        "series": lambda: frame["age"],
        "series of lists": lambda: pd.Series([[1, 2]] * N),
        "memoryview": lambda: memoryview(TABLE),
        "huge": lambda: TABLE * 1e300,
        "NaN": lambda: np.full((N, D), np.nan),
        "booleans": lambda: TABLE > 0,
        "float16": lambda: TABLE.astype(np.float16),
        "big integers": lambda: np.full((N, D), 10**400, object),
        "class": lambda: pd.DataFrame,
        "function": lambda: len,
        "another width": lambda: np.ones((N, D + 2)),
        "index": lambda: frame.columns,
    }
    try:
        import polars as pl

        made["polars"] = lambda: pl.DataFrame(TABLE, schema=NAMES)
        made["polars of lists"] = lambda: pl.DataFrame({"a": [[1, 2]] * N})
        made["polars lazy"] = lambda: pl.LazyFrame({"a": [1.0]})
        made["polars dates"] = lambda: pl.DataFrame({"a": [pd.Timestamp("2020")] * N})
    except ImportError:
        pass
    try:
        import torch

        made["tensor"] = lambda: torch.tensor(TABLE)
        made["tensor with gradients"] = lambda: torch.tensor(TABLE, requires_grad=True)
        made["sparse tensor"] = lambda: torch.eye(D).to_sparse()
    except ImportError:
        pass
    return made

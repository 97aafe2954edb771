import numpy as np
import pandas as pd

from propopt.explaining.fitted_rows import NearestRows
from propopt.tables.frames import names_of, some_columns, with_exchanged


def test_columns_of_a_frame_stay_a_frame():
    frame = pd.DataFrame({"age": [31, 47], "size": [1.6, 1.8]})
    assert names_of(frame) == ("age", "size")
    pd.testing.assert_frame_equal(some_columns(frame, [1]), frame[["size"]])


def test_values_of_other_rows():
    table = np.array([[1, 5], [2, 6], [3, 7]])
    exchanged = with_exchanged(table, [1], np.array([2, 0, 1]))
    np.testing.assert_array_equal(exchanged, [[1, 7], [2, 5], [3, 6]])


def test_the_nearest_rows_of_a_new_one():
    points = np.array([[0.0], [1.0], [3.0]])
    rows = NearestRows(coordinates=points, n_neighbors=2, lengthscale=None)
    near, similarities = rows.of(np.array([2.5]))
    assert near.tolist() == [2, 1]
    assert similarities.tolist() == [1.0, 1.0]

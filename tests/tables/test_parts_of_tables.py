import numpy as np
import pandas as pd

from propopt.tables.frames import names_of, some_columns, with_exchanged


def test_columns_of_a_frame_stay_a_frame():
    frame = pd.DataFrame({"age": [31, 47], "size": [1.6, 1.8]})
    assert names_of(frame) == ("age", "size")
    pd.testing.assert_frame_equal(some_columns(frame, [1]), frame[["size"]])


def test_values_of_other_rows():
    table = np.array([[1, 5], [2, 6], [3, 7]])
    exchanged = with_exchanged(table, [1], np.array([2, 0, 1]))
    np.testing.assert_array_equal(exchanged, [[1, 7], [2, 5], [3, 6]])

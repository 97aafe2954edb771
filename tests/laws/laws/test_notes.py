"""What a reader of slopes has to know of a column is said of that column alone."""

from __future__ import annotations

import numpy as np
import pytest

from propopt.laws.data_law import DataLaw, Reference
from propopt.tables.frames import Labels


NAN = np.nan
CONSTANT = "column 'c' is constant in the reference rows: 0"
MISSING = "column 'c' is missing in all reference rows: 0"
NEVER = "column 'c' is missing in rows, and never in the reference rows"


@pytest.mark.parametrize(
    ("reference", "rows", "told"),
    [
        ([1.0, 2.0, 3.0], [1.0, 5.0], ()),
        ([2.0, 2.0, 2.0], [1.0, 2.0], (CONSTANT,)),
        ([2.0, 2.0, 2.0], [1.0, NAN], (CONSTANT, NEVER)),
        # what is missing in all rows has an effect, of being missing, or none at all
        ([2.0, 2.0, 2.0], [NAN, NAN], (NEVER,)),
        ([2.0, 2.0, NAN], [NAN, NAN], ()),
        ([2.0, 2.0, NAN], [2.0, NAN], (CONSTANT,)),
        ([1.0, 2.0, 3.0], [1.0, NAN], (NEVER,)),
        ([1.0, 2.0, NAN], [1.0, NAN], ()),
        ([NAN, NAN, NAN], [1.0, NAN], (MISSING,)),
    ],
)
def test_a_column_without_a_slope_is_named(reference, rows, told):
    # the other column, of categories, has nothing to be said of
    points = np.column_stack([[0.0, 1.0, 0.0], reference])
    labels = Labels(features=("kind", "c"))
    law = DataLaw(Reference(points, (2, None), labels, n_rows=3))
    assert law.notes(np.column_stack([np.zeros(2), rows])) == told

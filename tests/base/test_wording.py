import numpy as np
import pytest

from propopt.base.cards import others_in_words
from propopt.base.files import as_cell
from propopt.base.resources import shown_bytes
from propopt.base.text import in_percent, percent, rounded_percent
from propopt.functions.cost import in_time
from propopt.interactions.fitting import changed_parts
from propopt.interactions.scores import are_counted, level_in_words, two_digits_up
from propopt.lime.diagnosis.diagnosis import as_row
from propopt.lime.laws.binned_columns import interval_words
from propopt.results.certain import plural


@pytest.mark.parametrize(
    ("words", "values", "expected"),
    [
        (in_percent, (0.53993, np.nan, -np.inf), ("54.0 %", "–", "–")),
        (rounded_percent, (0.844, 0.999, 1.0), ("84 %", "99 %", "100 %")),
        (percent, (0.01234, 1.784, 1e-17), ("1.2", "178", "0")),
        (level_in_words, (0.9, 0.995), ("90 %", "99.5 %")),
        (two_digits_up, (7.2, 12_340.0, 99_001.0), (8, 13_000, 100_000)),
        (shown_bytes, (2**31, 1.5 * 2**20, 0), ("2.0 GiB", "1.5 MiB", "0 bytes")),
        (
            in_time,
            (0.3, 24.4, 200.0, 10_000.0, 400_000.0),
            ("0.3 s", "24 s", "3 min", "2.8 h", "4.6 days"),
        ),
        (as_cell, ("=1+1", "age", "-1.5", -1.5), ("'=1+1", "age", "-1.5", -1.5)),
        (as_row, ("patient 0", "a", 3), ("patient 0", "row a", "row 3")),
        (are_counted, ([0, 2, 1], [0, 2], ["0"]), (True, False, False)),
        (lambda n: plural(n, "row"), (1, 1200), ("1 row", "1,200 rows")),
        (
            lambda now: changed_parts({"seed": "0", "table": "sha256:a1"}, now),
            ({"seed": "1", "table": "sha256:b"},),
            (["the seed is 1 and was 0", "the table is another"],),
        ),
        (
            others_in_words,
            ([0.5, -2.0], [-0.1]),
            ("2 others, at most 2 in size", "1 other, 0.1 in size"),
        ),
        (
            interval_words,
            (np.array([0.5, 2.0]), np.array([1.00001, 1.00002])),
            (
                ("≤ 0.5", "> 0.5 and ≤ 2", "> 2"),
                ("≤ 1.00001", "> 1.00001 and ≤ 1.00002", "> 1.00002"),
            ),
        ),
    ],
)
def test_numbers_and_names_in_words(words, values, expected):
    assert tuple(words(value) for value in values) == expected

"""Plots of interactions draw the scores that they are given, with their signs."""

import numpy as np
import pytest
from drawn import ax, bars_of, hatched_in, lengths_of, lines_of, rows_of
from interaction_scores import scores_of
from matplotlib.colors import to_hex
from scipy.stats import norm

from propopt.base.cards import BAR_LOWERS, BAR_RAISES
from propopt.base.errors import InvalidInput


NAMES = ("a", "b in $", "c", "d")
SCORES = {(0, 1): 2.0, (0, 2): 0.1, (1, 2): -1.0, (2, 3): 0.4}
"""Of errors of 0.1: clear are all but (0, 2), and (0, 3), (1, 3) were not scored."""
PAIRS = scores_of(NAMES, SCORES)


def test_a_plot_draws_where_it_is_told_and_says_what_the_intervals_are():
    unknown = scores_of(NAMES, {**SCORES, (1, 3): np.nan})
    blurred = scores_of(NAMES, SCORES, monte_carlo=np.array([0.0, np.nan, 0.0, 0.0]))
    none = scores_of(NAMES[:2], {(0, 1): 0.0}, errors=0.0)
    for scores in (PAIRS, unknown, blurred, none):
        axes = ax()
        assert scores.plot(ax=axes) is axes
        axes.figure.draw_without_rendering()
        assert axes.get_title().endswith(f"Bonferroni of {len(scores)}")
        with pytest.raises(InvalidInput, match=r"adjust: .*'homl'"):
            scores.plot(adjust="homl")


def test_bars_are_scores_and_lines_the_intervals_of_all_candidates():
    scores = scores_of(NAMES, SCORES, n_candidates=45)
    axes = scores.plot(ax=ax())
    lines = lines_of(axes)
    reach = 0.1 * norm.isf(0.1 / 2 / 45)
    expected = [(value - reach, value + reach) for value in (2.0, -1.0, 0.4, 0.1)]
    np.testing.assert_allclose(lines, expected, rtol=1e-12)
    assert rows_of(axes) == ["a × b in \\$", "b in \\$ × c", "c × d", "a × c"]
    assert lengths_of(axes) == [2.0, -1.0, 0.4, 0.1]
    colors = [BAR_RAISES, BAR_LOWERS, BAR_RAISES, BAR_RAISES]
    assert [to_hex(bar.get_facecolor()) for bar in bars_of(axes)] == colors
    assert hatched_in(axes) == [False, False, False, True]
    meaning = "below 0: can replace each other; above 0: needed together"
    assert meaning in axes.get_xlabel()
    axes = scores.plot(2, ax=ax())
    assert rows_of(axes) == ["a × b in \\$", "b in \\$ × c"]


def test_sets_of_any_size_have_bars():
    triples = scores_of(NAMES, {(0, 1, 2): 0.5, (1, 2, 3): -0.4}, order=3)
    axes = triples.plot(ax=ax())
    assert rows_of(axes) == ["a × b in \\$ × c", "b in \\$ × c × d"]
    assert "below 0: fewer of them suffice" in axes.get_xlabel()
    alone = scores_of(NAMES, {(0,): -0.5, (3,): 1.5}, order=1).plot(ax=ax())
    assert rows_of(alone) == ["d", "a"]
    assert "above 0: worse without it" in alone.get_xlabel()

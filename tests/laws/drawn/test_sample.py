"""Sampled attributions: unbiased in each block, with errors that are right, and nested.

Bounds: a t score of 29 degrees of freedom is beyond 7 by chance with probability
1.1e-7, one of 9 beyond 12 with 7.7e-7; at most 400 of them stand in a test.
"""

from __future__ import annotations

from dataclasses import replace

import golden_table as golden
import numpy as np
import pytest
from random_trees import boxes_of_trees, random_tree, some_rows
from scipy import stats

from propopt.base import resources
from propopt.base.errors import InvalidInput
from propopt.base.resources import Budget
from propopt.laws.data_law import DataLaw, Means, Reference
from propopt.laws.draws import N_BLOCKS, Control, Design, Sample


LAW = DataLaw(Reference.of_points(golden.TABLE))


def estimates(design, function, n_draws):
    """Estimates and standard errors, (N, D) each."""
    blocks = Sample.of(design, function, n_draws).blocks().slopes
    return blocks.mean(axis=0), blocks.std(axis=0, ddof=1) / np.sqrt(N_BLOCKS)


def mixed_forest(n_codes=3, n_rows=80):
    """A table of numbers, a category, a column of two values, and missing numbers."""
    rng = np.random.default_rng(5)
    table = some_rows(rng, n_rows, 5, coded=(2,), n_codes=n_codes)
    table[:, 1] = (table[:, 1] > 0.3) * 1.0
    table[::4, 3] = np.nan
    reference = Reference.of_points(table)
    codes = (None, None, n_codes, None, None)
    law = DataLaw(replace(reference, n_codes=codes))
    codes = (None, None, n_codes, None, None)
    trees = [random_tree(rng, 5, 4, coded=(2,), n_codes=n_codes) for _ in range(8)]
    return law, boxes_of_trees(trees, 0.5, n_columns=5, n_codes=codes), table[:12]


@pytest.mark.parametrize("n_codes", [3, 40], ids=["each category", "one that is drawn"])
def test_each_block_is_unbiased(n_codes):
    law, boxes, rows = mixed_forest(n_codes)
    expected = Means(boxes, law).of(rows)[1]
    result = [
        Sample.of(Design(law, rows, seed), boxes.value, 60).blocks().slopes
        for seed in range(30)
    ]
    for some in ([0], [7], range(N_BLOCKS)):
        values = [blocks[some].mean(axis=0) for blocks in result]
        mean, spread = np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
        moved = spread > 1e-9
        scores = (mean - expected)[moved] / (spread[moved] / np.sqrt(30))
        assert np.abs(scores).max() < 7.0
        assert moved.sum() > 40
    # the rest is exact, or so rare that it was not drawn
    np.testing.assert_allclose(mean[~moved], expected[~moved], atol=0.01)


def test_means_of_the_function_are_unbiased_too():
    law, boxes, rows = mixed_forest()
    expected = Means(boxes, law).of(rows)[0]
    result = np.array(
        [
            Sample.of(Design(law, rows, seed), boxes.value, 60)
            .blocks()
            .means.mean(axis=0)
            for seed in range(30)
        ]
    )
    scores = (result.mean(axis=0) - expected) / (
        result.std(axis=0, ddof=1) / np.sqrt(30)
    )
    assert np.abs(scores).max() < 7.0


def test_the_scatter_of_blocks_is_the_error():
    # a forest whose leaves hold many rows, so that none of them is a rare event
    rng = np.random.default_rng(2)
    table = rng.normal(size=(400, 4))
    law, rows = DataLaw(Reference.of_points(table)), table[:25]
    trees = [random_tree(rng, 4, 2) for _ in range(30)]
    boxes = boxes_of_trees(trees, n_columns=4)
    expected = Means(boxes, law).of(rows)[1]
    scores = []
    for seed in range(20):
        design = Design(law, rows, seed)
        values, errors = estimates(design, boxes.value, 200)
        used = expected != 0.0
        scores.append((values - expected)[used] / errors[used])
    scores = np.array(scores)
    covered = (np.abs(scores) < stats.t.ppf(0.975, N_BLOCKS - 1)).mean()
    # rows have their draws in common, so that seeds are what is independent; the share
    # of a seed scatters by about 0.04, the mean of 20 by 0.01
    assert 0.90 < covered < 0.98
    assert np.abs(scores).max() < 12.0
    assert 0.7 < np.sqrt((scores**2).mean()) < 1.35


def test_the_golden_table_is_met():
    values, errors = estimates(Design(LAW, golden.ROWS, 0), golden.function, 4000)
    told = errors > 1e-12
    scores = (values - golden.CONTRASTS)[told] / errors[told]
    assert np.abs(scores).max() < 12.0
    # the rest is exact, or so rare that it was not drawn
    rest = np.abs(values - golden.CONTRASTS)[~told]
    assert rest.max() < 0.01


def test_linear_functions_have_no_error():
    beta = np.array([2.0, -1.0, 0.5, 0.25, 7.0])
    rows = golden.ROWS[[0, 1, 2, 4]]
    design = Design(LAW, rows, 3)
    blocks = Sample.of(design, lambda P: P[:, :5] @ beta, 500).blocks().slopes
    expected = np.where(np.arange(6) < 4, np.append(beta, 0.0), 0.0)
    np.testing.assert_allclose(blocks - expected, 0.0, atol=1e-7)


def test_columns_that_are_not_used_are_zero_in_pairs():
    law, _, rows = mixed_forest()

    def first_alone(P):
        return np.exp(np.nan_to_num(P[:, 0]))

    blocks = Sample.of(Design(law, rows, 0), first_alone, 60).blocks().slopes
    by_pairs = ~law.has_slopes(rows)
    by_pairs[:, 0] = False
    assert (blocks[:, by_pairs] == 0.0).all()
    assert by_pairs.sum() > 20
    assert (blocks[:, :, 0] != 0.0).any()
    constant = Design(LAW, golden.ROWS, 0)
    blocks = Sample.of(constant, golden.function, 60).blocks().slopes
    assert (blocks[:, :, 4] == 0.0).all()


def test_effects_of_a_function_of_one_category_are_exact():
    law, _, rows = mixed_forest()
    worth = np.array([1.0, -2.0, 0.5])

    def model(P):
        return worth[P[:, 2].astype(int)] + np.nan_to_num(P[:, 0] * P[:, 4])

    blocks = Sample.of(Design(law, rows, 0), model, 60).blocks().slopes
    expected = worth[rows[:, 2].astype(int)] - law.columns[2].shares @ worth
    np.testing.assert_allclose(blocks[:, :, 2], np.tile(expected, (10, 1)), atol=1e-12)


@pytest.mark.parametrize("steps", [(60, 100), (60, 70, 90, 100)])
def test_a_sample_that_grew_is_the_sample_that_was_large(steps):
    law, boxes, rows = mixed_forest()
    calls = []

    def counted(P):
        calls.append(len(P))
        return boxes.value(P)

    design = Design(law, rows, 4)
    grown = Sample.of(design, counted, steps[0])
    for n_draws in steps[1:]:
        grown = grown.extended(n_draws)
    asked = sum(calls)
    large = Sample.of(design, counted, steps[-1])
    assert asked == large.evaluations == grown.evaluations == sum(calls) - asked
    for ours, theirs in zip(grown.blocks(), large.blocks(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(grown.values, large.values)


def test_a_sample_is_left_as_it_was_when_it_grows():
    law, boxes, rows = mixed_forest()
    sample = Sample.of(Design(law, rows, 4), boxes.value, 60)
    before = sample.blocks().slopes
    sample.extended(200)
    np.testing.assert_array_equal(sample.blocks().slopes, before)


@pytest.mark.parametrize("n_codes", [3, 40], ids=["each category", "one that is drawn"])
def test_the_number_of_evaluations_is_known_before(n_codes):
    law, boxes, rows = mixed_forest(n_codes)
    sizes = []

    def counted(P):
        sizes.append(len(P))
        return boxes.value(P)

    design = Design(law, rows, 0)
    sample = Sample.of(design, counted, 60)
    assert sum(sizes) == sample.evaluations == 60 * design.per_draw


def test_numbers_take_one_evaluation():
    table = np.random.default_rng(0).normal(size=(30, 4))
    law = DataLaw(Reference.of_points(table))
    assert Design(law, table[:7], 0).per_draw == 7


def test_rows_do_not_depend_on_their_company_nor_on_the_size_of_calls(
    monkeypatch,
):
    def slopes(rows):
        design = Design(LAW, golden.ROWS[rows], 0)
        return Sample.of(design, counted, 60).blocks().slopes

    def counted(P):
        sizes.append(len(P))
        return golden.function(P)

    sizes = []
    whole = slopes(range(6))
    np.testing.assert_array_equal(slopes([5, 3]), whole[:, [5, 3]])
    monkeypatch.setattr(resources, "MODEL_CALLS", Budget(2**25, 50))
    sizes.clear()
    np.testing.assert_array_equal(slopes(range(6)), whole)
    assert max(sizes) <= 50


def test_seeds_draw_other_numbers():
    law, boxes, rows = mixed_forest()
    one, other = (
        Sample.of(Design(law, rows, seed), boxes.value, 60).values for seed in (0, 1)
    )
    assert (one != other).any()


def sigmoid(m):
    return 1.0 / (1.0 + np.exp(-m))


def with_control(boxes, law, rows, seed):
    means, attributions = Means(boxes, law).of(rows)
    control = Control(boxes.value, means, attributions)
    return Design(law, rows, seed, control)


def test_a_control_leaves_no_bias_and_less_error():
    law, boxes, rows = mixed_forest()

    def probability(P):
        return sigmoid(1.5 * boxes.value(P))

    truth, errors = estimates(Design(law, rows, 1000), probability, 20_000)
    plain, controlled = (
        np.array([estimates(d, probability, 100)[0] for d in designs])
        for designs in (
            [Design(law, rows, s) for s in range(30)],
            [with_control(boxes, law, rows, s) for s in range(30)],
        )
    )
    spread = np.sqrt(controlled.var(axis=0, ddof=1) / 30 + errors**2)
    moved = spread > 1e-9
    scores = (controlled.mean(axis=0) - truth)[moved] / spread[moved]
    assert np.abs(scores).max() < 7.0
    ratio = plain.var(axis=0).sum() / controlled.var(axis=0).sum()
    assert ratio > 1.2, ratio


def test_a_control_that_is_the_function_leaves_nothing_to_chance():
    law, boxes, rows = mixed_forest()
    expected = Means(boxes, law).of(rows)
    design = with_control(boxes, law, rows, 0)
    result = Sample.of(design, lambda P: 2.0 * boxes.value(P) + 1.0, 60).blocks()
    np.testing.assert_allclose(result.slopes.mean(axis=0), 2.0 * expected[1], atol=1e-7)
    np.testing.assert_allclose(
        Sample.of(with_control(boxes, law, rows, 0), boxes.value, 60).blocks().means,
        np.tile(expected[0], (10, 1)),
        atol=1e-7,
    )


def test_a_control_keeps_zeros_of_columns_that_are_not_used():
    law, boxes, rows = mixed_forest()
    design = with_control(boxes, law, rows, 0)
    blocks = (
        Sample.of(design, lambda P: np.exp(np.nan_to_num(P[:, 0])), 60).blocks().slopes
    )
    by_pairs = ~law.has_slopes(rows)
    by_pairs[:, 0] = False
    assert (blocks[:, by_pairs] == 0.0).all()
    assert by_pairs.sum() > 20


def test_a_sample_that_is_too_small_is_refused():
    law, boxes, rows = mixed_forest()
    design = Design(law, rows, 0)
    assert design.cost.fewest == 20  # 18 of others for the four that move
    with pytest.raises(InvalidInput, match=r"n_draws: 5 draws are too few .* least 20"):
        Sample.of(design, boxes.value, 5)
    with pytest.raises(InvalidInput, match="multiple of 10 from 0 on, got 25"):
        Sample.of(design, boxes.value, 25)
    with pytest.raises(InvalidInput, match="multiple of 10 from 60 on, got 50"):
        Sample.of(design, boxes.value, 60).extended(50)
    wide = np.random.default_rng(0).normal(size=(30, 40))
    law = DataLaw(Reference.of_points(wide))
    assert Design(law, wide, 0).cost.fewest == 100  # 90 of others for 41 terms

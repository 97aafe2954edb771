"""Shares beside the losses of a sweep: columns, file, card; baselines too."""

from __future__ import annotations

import math

import numpy as np
import pytest
from crafted_archives import header_of, members_of, with_header, write_signed
from golden_chains import KEPT, ROUGHNESS_REMOVED, SMOOTHNESS_REMOVED, G, objective

import propopt as po
from propopt.base.errors import InvalidInput


ROBUST = "pairwise_robustness"


def curve(**settings):
    weights = {ROBUST: [0.0, 0.5, 5.0]}
    return po.sweep(objective(), weights, [0.5 * G], **settings)


def test_a_table_ends_with_shares():
    table = curve().to_frame()
    shares = ["kept", f"removed.{ROBUST}", "removed.smoothness"]
    assert list(table.columns)[-3:] == shares
    golden = [KEPT, ROUGHNESS_REMOVED, SMOOTHNESS_REMOVED]
    np.testing.assert_allclose(table.loc[1, shares].astype(float), golden, atol=1e-9)


def test_baselines_have_the_shares_of_their_own_losses():
    trade_offs = curve()
    row = trade_offs.to_frame().iloc[-1]
    shares = trade_offs.baselines[0].shares(objective())
    assert row["kept"] == pytest.approx(shares.kept["gradient_matching"], rel=1e-12)
    assert row[f"removed.{ROBUST}"] == pytest.approx(0.75, rel=1e-12)


def test_ends_are_the_same_for_all_weights_of_a_sweep():
    # of the first point robustness has no weight, and is removed as far as it is
    table = curve().to_frame()
    assert (table["kept"].iloc[:3].diff().dropna() < 0.0).all()
    assert 0.0 < table[f"removed.{ROBUST}"].iloc[0] < 0.9


def test_several_faithfulness_losses_have_a_column_each():
    values = np.linspace(0.0, 1.0, 4)
    both = po.GradientMatching(G) + po.FunctionMatching(G, values)
    table = po.sweep(both + po.Sparsity(), {"sparsity": [0.1]}).to_frame()
    assert {"kept.gradient_matching", "kept.function_matching"} <= set(table.columns)


def test_shares_are_saved_and_known_after_loading(tmp_path):
    trade_offs = curve()
    trade_offs.save(tmp_path / "curve")
    again = po.TradeOffs.load(tmp_path / "curve.npz")
    assert again.ends == trade_offs.ends
    assert again.front().ends == trade_offs.ends
    assert "54.0 %" in again._repr_html_()


@pytest.mark.parametrize(
    "ends",
    [
        {"faithful": ["x"], "roots": [], "at_target": {}, "far": {}, "sizes": {}},
        {"faithful": "x", "roots": [], "at_target": {}, "far": {}, "sizes": {}},
        {"faithful": [], "roots": [], "at_target": {"a": "1"}, "far": {}, "sizes": {}},
        [],
    ],
)
def test_ends_that_mean_nothing_are_refused(ends, tmp_path):
    path = tmp_path / "curve.npz"
    curve().save(path)
    members = members_of(path)
    write_signed(path, with_header(members, {**header_of(members), "ends": ends}))
    with pytest.raises(InvalidInput, match="ends"):
        po.TradeOffs.load(path)


def test_trade_offs_without_ends_have_no_such_columns():
    best = po.solve(objective())
    alone = po.TradeOffs(optimized=(best,), baselines=(), losses=("smoothness",))
    assert not any(c.startswith(("kept", "removed")) for c in alone.to_frame())
    assert "<table" in alone._repr_html_()


def test_a_constant_target_has_empty_cells(tmp_path):
    flat = po.GradientMatching(np.ones((4, 3)))
    problem = flat + po.PairwiseRobustness(po.chain_graph(4))
    trade_offs = po.sweep(problem, {ROBUST: [1.0]}, [G])
    table = trade_offs.to_frame()
    assert table["kept"].tolist() == [1.0, -math.inf]
    assert table[f"removed.{ROBUST}"].isna().all()
    trade_offs.save(tmp_path / "flat")
    assert "–" in po.TradeOffs.load(tmp_path / "flat.npz")._repr_html_()


def test_cards_of_explanations_tell_shares():
    best = po.solve(objective())
    assert best.loss_shares["gradient_matching"] == pytest.approx(KEPT, abs=1e-9)
    assert "54.0 %" in best._repr_html_()
    baseline = po.Explanation(attributions=G, method="mine")
    assert baseline.loss_shares == {}

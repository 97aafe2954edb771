"""CatBoost: trees, including splits on categories, and margins.

It compares numbers in float32, and values above a border go right; symmetric trees have
the same split at each level. Such a split may test whether a category is a given one,
or whether a statistic of the target is above a border. The statistic belongs to a
category, or to a combination of several categories and of numbers above borders. Hashes
and statistics are not computed here: the model returns the leaf of each category, or of
each combination, which determines the outcome of every split.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, TypeAlias, final

import numpy as np

from propopt.base.arrays import Array, Indices, Mask
from propopt.base.extras import require
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.boxes.sets import Tree, node_shares
from propopt.structures.kinds import class_name_of
from propopt.structures.readers.model_reader import CONSTANT, MarginRule, ModelReader
from propopt.structures.readers.pipelines import (
    ColumnView,
    ModelOutput,
    floats,
)
from propopt.structures.readers.tree_nodes import (
    MOST_NODES,
    Split,
    at_most_in_single,
    build_tree,
    sum_of_trees,
    tree_score,
)
from propopt.tables.frames import as_frame


MAX_LEAF_INDICES: Final = 20_000_000
"""The most leaf indices requested: combinations of categories times trees."""

_Saved: TypeAlias = Mapping[str, Any]
"""A model in JSON, or a part of it."""


def trees_of_categories(
    model: Any, saved: _Saved, view: ColumnView, values: Sequence[Array], base: float
) -> TreeSum | None:
    """Sum of symmetric trees that split on categories, with the given leaf values."""
    splits = _Splits(model, saved, view)
    if any(view.sources[k].kind != "codes" for k in splits.categorical):
        return None
    trees = [
        splits.tree(number, tree, leaf_values)
        for number, (tree, leaf_values) in enumerate(
            zip(saved["oblivious_trees"], values, strict=True)
        )
    ]
    model_view = view.through(splits.numbers, view.sources)
    return sum_of_trees(
        trees, base, model_view, lambda numbers: np.asarray(numbers, float)
    )


_Levels: TypeAlias = dict[int, Indices]
"""The levels of columns that reach a node: codes, or intervals between borders."""


@final
@dataclass(frozen=True, eq=False)
class _Splits:
    """The splits of symmetric trees, in terms of the columns of a table."""

    model: Any
    saved: _Saved
    view: ColumnView

    @cached_property
    def _floats(self) -> list[_Saved]:
        return self.saved["features_info"].get("float_features", [])

    @cached_property
    def _categories(self) -> list[_Saved]:
        return self.saved["features_info"]["categorical_features"]

    @property
    def categorical(self) -> list[int]:
        """The categorical columns of the model."""
        return [feature["flat_feature_index"] for feature in self._categories]

    # ---- Columns that splits depend on

    @cached_property
    def _statistics(self) -> list[_Saved]:
        """The statistic behind each border, in the order of the split indices."""
        ctrs = self.saved["features_info"].get("ctrs", [])
        return [ctr for ctr in ctrs for _ in ctr["borders"]]

    @cached_property
    def _before(self) -> int:
        """The number of splits with indices before those of statistics."""
        features = (*self._floats, *self._categories)
        splits = [x.get("borders") or x.get("values") or () for x in features]
        return sum(map(len, splits))

    def _elements(self, split: _Saved) -> list[_Saved]:
        """The elements that a split combines: categories, and numbers above borders."""
        if split["split_type"] == "OneHotFeature":
            return [split]
        ctr = self._statistics[split["split_index"] - self._before]
        elements = json.loads(ctr["identifier"])["identifier"]
        assert isinstance(elements, list), "a list of combined elements"
        return elements

    def _columns(self, split: _Saved) -> tuple[int, ...]:
        """The columns of the model that a split depends on, increasing."""
        return tuple(sorted({self._column(part) for part in self._elements(split)}))

    def _column(self, part: _Saved) -> int:
        if "cat_feature_index" in part:
            features = self._categories
            name = "cat_feature_index"
        else:
            features = self._floats
            name = "float_feature_index"
        return int(features[part[name]]["flat_feature_index"])

    @cached_property
    def _all_splits(self) -> list[_Saved]:
        return [
            split
            for tree in self.saved["oblivious_trees"]
            for split in tree["splits"] or []
            if split["split_type"] != "FloatFeature"
        ]

    @cached_property
    def _borders(self) -> dict[int, Array]:
        """The borders of numbers in statistics, by column, increasing."""
        borders: dict[int, set[float]] = {}
        for split in self._all_splits:
            for part in self._elements(split):
                if "cat_feature_index" not in part:
                    borders.setdefault(self._column(part), set()).add(part["border"])
        return {k: np.array(sorted(values)) for k, values in borders.items()}

    def _levels(self, k: int) -> Array:
        """A value of each level of a column: a code, or a number of the interval."""
        if k in self._borders:
            borders = self._borders[k].astype(np.float32)
            return np.append(borders, np.nextafter(borders[-1], np.float32(np.inf)))
        return self._taken[k]

    @cached_property
    def _taken(self) -> dict[int, Array]:
        """Codes of categories that the model accepts; it may refuse missing ones."""
        accepted = {}
        for k in self.categorical:
            codes = np.arange(float(self._n_codes(k)))
            if not self._takes(k, codes):
                codes = codes[[self._takes(k, codes[[c]]) for c in range(len(codes))]]
            accepted[k] = codes
        return accepted

    def _n_codes(self, k: int) -> int:
        """The number of codes of a column; 0 for numbers."""
        return self.view.n_codes[self.view.sources[k].column] or 0

    def _takes(self, k: int, codes: Array) -> bool:
        """Whether the model accepts a column with these codes."""
        from catboost import CatBoostError

        try:
            self.model.calc_leaf_indexes(self._table([k], [codes]), 0, 1)
        except (CatBoostError, TypeError):  # None may raise either
            return False
        return True

    def _table(self, columns: Sequence[int], values: Sequence[Array]) -> Any:
        """The model's input where some of its columns have these values (n,)."""
        points = np.tile(self.view.start, (len(values[0]), 1))
        for k, of_column in zip(columns, values, strict=True):
            points[:, self.view.sources[k].column] = of_column
        return self.view.transform(points)

    # ---- Outcomes of splits

    @cached_property
    def _leaves(self) -> dict[tuple[int, ...], Indices]:
        """The leaf of each tree at all combinations of some columns, (..., trees)."""
        combinations = {self._columns(split) for split in self._all_splits}
        sizes = [[len(self._levels(k)) for k in columns] for columns in combinations]
        rows = sum(math.prod(shape) for shape in sizes)
        n_trees = len(self.saved["oblivious_trees"])
        if rows * n_trees > MAX_LEAF_INDICES:
            raise ValueError(
                f"{n_trees:,} trees split on {rows:,} combinations of categories; "
                f"expected at most {MAX_LEAF_INDICES:,} leaf indices"
            )
        return {columns: self._leaf_indices(columns) for columns in combinations}

    def _leaf_indices(self, columns: tuple[int, ...]) -> Indices:
        mesh = np.meshgrid(*map(self._levels, columns), indexing="ij")
        table = self._table(columns, [values.ravel() for values in mesh])
        leaves = np.asarray(self.model.calc_leaf_indexes(table))
        return leaves.reshape(*mesh[0].shape, -1)

    def numbers(self, table: Any) -> Array:
        """Numbers unchanged, and codes of categories, shape (n, M)."""
        numbers = np.empty((len(table), len(self.view.sources)))
        for k, cells in enumerate(_cells_of(table)):
            if k in self._codes:
                numbers[:, k] = [self._codes[k].get(cell, np.nan) for cell in cells]
            else:
                numbers[:, k] = np.asarray(cells, dtype=np.float64)
        return numbers

    @cached_property
    def _codes(self) -> dict[int, dict[Any, float]]:
        """The code of each category in the model's input table, by column."""
        code_of = {}
        for k in self.categorical:
            codes = self._levels(k)
            cells = _cells_of(self._table([k], [codes]))[k]
            code_of[k] = dict(zip(cells, codes.tolist(), strict=True))
        return code_of

    # ---- Trees

    @cached_property
    def _is_of_columns(self) -> bool:
        """Whether each split is of one column, so that shares are of one player."""
        return all(len(self._columns(split)) == 1 for split in self._all_splits)

    def tree(self, number: int, saved: _Saved, values: Array) -> Tree | None:
        """A tree by its number; split b is bit b of a leaf, and the last is the root.

        Rows of the training had other statistics, of rows before them, so that some
        may be where no category leads.
        """
        splits = saved["splits"] or []
        weights = _leaf_weights(saved if self._is_of_columns else {"splits": splits})
        outcomes = [
            None
            if split["split_type"] == "FloatFeature"
            else ((self._leaves[self._columns(split)][..., number] >> b) & 1) != 0
            for b, split in enumerate(splits)
        ]

        def node_at(state: tuple[int, int, _Levels, _Pending | None]) -> Split | float:
            """The node of split b, or of the columns of it that are still undecided."""
            b, leaf, levels, pending = state
            if pending is None and b < 0:
                return float(values[leaf])
            if pending is None:
                split = splits[b]
                table = outcomes[b]
                yes = (b - 1, leaf | 1 << b, levels, None)
                no = (b - 1, leaf, levels, None)
                rows = [weights[i : i + (1 << b)].sum() for i in (leaf | 1 << b, leaf)]
                of_yes, of_no = (float(x / (sum(rows) or 1.0)) for x in rows)
                if table is None:
                    feature = self._floats[split["float_feature_index"]]
                    cut = float(at_most_in_single(split["border"]))
                    k = feature["flat_feature_index"]
                    low = _is_low(feature)
                    return Split(int(k), cut, low, no, yes, shares=(of_no, of_yes))
                columns = self._columns(split)
                if self._is_of_columns:
                    k = columns[0]
                    here = levels.get(k, np.arange(len(table)))
                    some = here[table[here]]
                    others = here[~table[here]]
                    yes = (*yes[:2], {**levels, k: some}, None)
                    no = (*no[:2], {**levels, k: others}, None)
                    if len(some) == 0 and not of_yes > 0.0:
                        return node_at(no)
                    if len(others) == 0 and not of_no > 0.0:
                        return node_at(yes)
                    codes = self._codes_at(k, some)
                    return Split(k, np.inf, False, yes, no, codes, (of_yes, of_no))
                every = [np.arange(size) for size in table.shape]
                levels_here = [
                    levels.get(k, full) for k, full in zip(columns, every, strict=True)
                ]
                pending = table[np.ix_(*levels_here)], columns
            table, columns = pending
            if (table == table.flat[0]).all():
                return node_at((b - 1, leaf | int(table.flat[0]) << b, levels, None))
            k = columns[0]
            rest = columns[1:]
            same = (table == table[0]).reshape(len(table), -1).all(axis=1)
            if same.all():
                return node_at((b, leaf, levels, (table[0], rest)))
            return self._divided(state, pending, same)

        return build_tree((len(splits) - 1, 0, {}, None), node_at, MOST_NODES)

    def _divided(
        self, state: tuple[int, int, _Levels, Any], pending: _Pending, same: Mask
    ) -> Split:
        """A node that sends left the levels with the outcome of the first level."""
        b, leaf, levels_of, _ = state
        table, columns = pending
        k = columns[0]
        levels_here = levels_of.get(columns[0], np.arange(len(table)))
        if k in self._borders:  # intervals are split at one border
            same = np.arange(len(same)) < int(np.argmin(same))
        left = (b, leaf, {**levels_of, k: levels_here[same]}, (table[same], columns))
        right = (b, leaf, {**levels_of, k: levels_here[~same]}, (table[~same], columns))
        if k not in self._borders:
            codes = self._codes_at(k, levels_here[same])
            return Split(k, np.inf, False, left, right, codes)
        border = self._borders[k][levels_here[same][-1]]
        low = next(_is_low(f) for f in self._floats if f["flat_feature_index"] == k)
        return Split(k, float(at_most_in_single(border)), low, left, right)

    def _codes_at(self, k: int, levels: Indices) -> Mask:
        """Which codes of a category are at some of its levels."""
        return np.isin(np.arange(self._n_codes(k)), self._levels(k)[levels])


def _cells_of(table: Any) -> list[Any]:
    """The cells of each column of a model's input table."""
    frame = as_frame(table, "X")
    if frame is None:
        return list(table.T)
    return [frame.table.iloc[:, k] for k in range(frame.table.shape[1])]


_Pending: TypeAlias = tuple[Mask, tuple[int, ...]]
"""The outcomes of a split at the levels that reach a node, and their columns."""


def _is_low(feature: _Saved) -> bool:
    """Whether missing values are below all borders."""
    return bool(feature["nan_value_treatment"] != "AsTrue")


# ---- Trees of numbers, and trees that split on categories


_CATBOOST_LOGITS: Final = frozenset({"CrossEntropy", "Logloss"})
"""Loss functions with the log-odds as score."""

_CATBOOST_VALUES: Final = frozenset(
    {
        "Cox",
        "Expectile",
        "Huber",
        "LogCosh",
        "LogLinQuantile",
        "Lq",
        "MAE",
        "MAPE",
        "MultiRMSE",
        "Quantile",
        "RMSE",
        "SurvivalAft",
    }
)
"""Loss functions with the prediction as score."""

_CATBOOST_SCORES: Final = "catboost.CatBoost", "catboost.CatBoostRanker"
"""Classes that predict scores, whatever their loss."""


def _trees(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """The bias and the sum of trees, all times a scale."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        saved: dict[str, Any] = json.loads(path.read_text())
    scale, biases = saved["scale_and_bias"]
    loss = _loss(model)
    logit = 1.0 if loss in _CATBOOST_LOGITS else None
    is_value = loss in _CATBOOST_VALUES or class_name_of(model) in _CATBOOST_SCORES
    score = tree_score(output, len(biases), is_value=is_value, logit=logit)
    kinds = {kind for kind, features in saved["features_info"].items() if features}
    asks_categories = kinds - {"float_features"}
    if score is None or not asks_categories <= {"categorical_features", "ctrs"}:
        return None  # splits on text or embeddings
    index, factor = score
    weight = factor * scale
    base = factor * float(biases[index])
    if asks_categories:
        if "oblivious_trees" not in saved:
            return None  # only symmetric trees have leaf indices that encode the splits
        values = [
            weight * floats(tree["leaf_values"])[index :: len(biases)]
            for tree in saved["oblivious_trees"]
        ]
        return trees_of_categories(model, saved, view, values, base)
    features = saved["features_info"]["float_features"]
    columns = (
        np.array([f["flat_feature_index"] for f in features], np.intp),
        np.array(list(map(_is_low, features)), bool),
    )
    if "oblivious_trees" in saved:
        trees: list[Tree | None] = [
            _symmetric(tree, columns, weight, index, len(biases))
            for tree in saved["oblivious_trees"]
        ]
    else:
        trees = [
            build_tree(tree, partial(_catboost_split, columns, weight, index))
            for tree in saved["trees"]
        ]
    return sum_of_trees(trees, base, view)


_Columns: TypeAlias = tuple[Indices, Mask]
"""The indices of numeric columns, and whether missing values go left there."""


def _symmetric(
    tree: Mapping[str, Any], columns: _Columns, weight: float, index: int, count: int
) -> Tree:
    """A tree of d levels as a heap; bit b of a leaf's index is level b from below."""
    splits = list(reversed(tree["splits"] or []))
    depth = len(splits)
    n_inner = 2 ** len(splits) - 1
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    feature = np.array([s["float_feature_index"] for s in splits], dtype=np.intp)[level]
    border = np.array([s["border"] for s in splits], dtype=np.float64)[level]
    values = weight * np.array(tree["leaf_values"], dtype=np.float64)[index::count]
    left = 2 * np.arange(n_inner) + 1
    cover = [_leaf_weights(tree)]
    while len(cover[0]) > 1:
        cover.insert(0, cover[0][::2] + cover[0][1::2])
    column, missing_left = columns
    leaves = np.full(n_inner + 1, -1)
    left = np.concatenate([left, leaves])
    right = np.where(left < 0, -1, left + 1)
    return Tree.of(
        np.concatenate([column[feature], leaves]),
        np.concatenate([at_most_in_single(border), leaves]),
        left,
        right,
        np.concatenate([np.zeros(n_inner), values]),
        np.concatenate([missing_left[feature], leaves > 0]),
        share=node_shares(np.concatenate(cover), left, right),
    )


def _leaf_weights(tree: _Saved) -> Array:
    """The weight of the training rows at each leaf of a symmetric tree."""
    unknown = np.full(2 ** len(tree["splits"] or []), np.nan)
    return floats(tree.get("leaf_weights") or unknown)


def _catboost_split(
    columns: _Columns, weight: float, index: int, node: Mapping[str, Any]
) -> Split | float:
    """A node of a tree with different splits at each level."""
    if "split" not in node:
        return weight * float(np.ravel(node["value"])[index])
    split = node["split"]
    column, missing_left = columns
    feature = split["float_feature_index"]
    cut = at_most_in_single(split["border"])
    missing = bool(missing_left[feature])
    sides = node["left"], node["right"]
    left, right = map(_weight, sides)
    rows = left + right or 1.0
    shares = left / rows, right / rows
    return Split(int(column[feature]), float(cut), missing, *sides, shares=shares)


def _weight(node: _Saved) -> float:
    """The weight of the training rows that reach a node."""
    if "split" in node:
        return _weight(node["left"]) + _weight(node["right"])
    return float(node.get("weight", np.nan))


# ---- What the library's classes are


def _columns(model: Any) -> list[str] | None:
    """The names of the columns; None for arrays, whose columns the library numbers."""
    names: list[str] | None = model.feature_names_
    return None if names == [str(j) for j in range(len(names or ()))] else names


def _given_margin(model: Any, table: Any, margins: Array | None) -> Any:
    """Margins given a baseline, which the trees are added to."""
    categories = model.get_cat_feature_indices()
    pool = require("catboost").Pool(table, cat_features=categories, baseline=margins)
    return model.predict(pool, prediction_type="RawFormulaVal")


def _loss(model: Any) -> str:
    """The name of the loss function; "" if the model is a sum over different ones.

    Sums of models have no parameters of a training.
    """
    saved = dict(model.get_metadata().items())
    loss = json.loads(saved.get("loss_function") or '{"type": ""}')
    if saved.get("params"):
        loss = json.loads(saved["params"])["loss_function"]
    return str(loss["type"])


def _n_labels(model: Any) -> int:
    several = _loss(model) in ("MultiLogloss", "MultiCrossEntropy")
    return len(model.classes_) if several else 1


_MODEL: Final = ModelReader(
    trees=_trees,
    margin=MarginRule(
        "predict",
        {"prediction_type": "RawFormulaVal"},
        lambda model: 1.0 if _loss(model) in _CATBOOST_LOGITS else None,
    ),
    given_margin=_given_margin,
)

CATBOOST: Final[Mapping[str, ModelReader]] = {
    "catboost.CatBoost": replace(
        CONSTANT,
        trees=_trees,
        columns=_columns,
        given_margin=_given_margin,
    ),
    "catboost.CatBoostClassifier": replace(
        _MODEL, takes_numbers=True, n_labels=_n_labels
    ),
    "catboost.CatBoostRanker": ModelReader(trees=_trees),
    "catboost.CatBoostRegressor": replace(_MODEL, takes_numbers=True),
}

"""CatBoost: its trees, also those that ask for categories, and its margins.

It compares numbers in float32, and what is more than a border goes right; its trees may
ask the same at each level. A split of a symmetric tree may ask whether a category is a
given one, or whether a statistic of the target is above a border. The statistic belongs
to a category, or to a combination of several categories and of numbers above borders.
Hashes and statistics are not computed here: the model is asked for the leaf of each
category, or of each combination, which says what every split answers.
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
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Indices, Mask, Points
from propopt.base.extras import require
from propopt.structures.boxes.boxes import TreeSum
from propopt.structures.boxes.sets import Tree
from propopt.structures.kinds import class_name_of
from propopt.structures.readers.model_reader import CONSTANT, MarginRule, ModelReader
from propopt.structures.readers.pipelines import (
    ColumnSource,
    ColumnView,
    ModelOutput,
    floats,
)
from propopt.structures.readers.tree_nodes import (
    MOST_NODES,
    Split,
    TreeScore,
    at_most_in_single,
    sum_of_trees,
    written,
)
from propopt.tables.frames import as_frame


MOST_ANSWERS: Final = 20_000_000
"""Combinations of categories that are asked for, times trees."""

_Saved: TypeAlias = Mapping[str, Any]
"""A model in JSON, or a part of it."""


def trees_of_categories(
    model: Any, saved: _Saved, view: ColumnView, values: Sequence[Array], base: float
) -> TreeSum | None:
    """The sum of symmetric trees whose leaves have these values."""
    splits = _Splits(model, saved, view)
    if not splits.are_known:
        return None
    trees = [
        splits.tree(place, tree["splits"] or [], own)
        for place, (tree, own) in enumerate(
            zip(saved["oblivious_trees"], values, strict=True)
        )
    ]
    seen = view.through(splits.numbers, splits.sources)
    return sum_of_trees(trees, base, seen, lambda numbers: np.asarray(numbers, float))


_Levels: TypeAlias = dict[int, Indices]
"""Of columns the levels that come to a node: codes, or intervals between borders."""


@final
@dataclass(frozen=True, eq=False)
class _Splits:
    """What splits ask of the columns of a table."""

    model: Any
    saved: _Saved
    view: ColumnView

    @cached_property
    def _floats(self) -> list[_Saved]:
        found: list[_Saved] = self.saved["features_info"].get("float_features", [])
        return found

    @cached_property
    def _categories(self) -> list[_Saved]:
        found: list[_Saved] = self.saved["features_info"]["categorical_features"]
        return found

    @cached_property
    def sources(self) -> list[ColumnSource]:
        """Where the columns of the model come from; its categories are codes."""
        return list(self.view.sources)

    @property
    def are_known(self) -> bool:
        """Whether each category of the model is one of the table."""
        places = [own["flat_feature_index"] for own in self._categories]
        return all(self.sources[k].kind == "codes" for k in places)

    # ---- what splits depend on

    @cached_property
    def _statistics(self) -> list[_Saved]:
        """The statistic behind each border, in the order of the numbers of splits."""
        ctrs = self.saved["features_info"].get("ctrs", [])
        return [ctr for ctr in ctrs for _ in ctr["borders"]]

    @cached_property
    def _before(self) -> int:
        """How many splits have numbers before those of statistics."""
        told = [len(own.get("borders") or ()) for own in self._floats]
        told += [len(own.get("values") or ()) for own in self._categories]
        return sum(told)

    def _elements(self, split: _Saved) -> list[_Saved]:
        """What a split combines: categories, and numbers above borders."""
        if split["split_type"] == "OneHotFeature":
            return [split]
        ctr = self._statistics[split["split_index"] - self._before]
        known = json.loads(ctr["identifier"])["identifier"]
        assert isinstance(known, list), "a list of what is combined"
        return known

    def _columns(self, split: _Saved) -> tuple[int, ...]:
        """The columns of the model that a split depends on, increasing."""
        return tuple(sorted({self._place(part) for part in self._elements(split)}))

    def _place(self, part: _Saved) -> int:
        if "cat_feature_index" in part:
            features, name = self._categories, "cat_feature_index"
        else:
            features, name = self._floats, "float_feature_index"
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
        """The borders of numbers that statistics are of, by column, increasing."""
        found: dict[int, set[float]] = {}
        for split in self._all_splits:
            for part in self._elements(split):
                if "cat_feature_index" not in part:
                    found.setdefault(self._place(part), set()).add(part["border"])
        return {k: np.array(sorted(borders)) for k, borders in found.items()}

    def _levels(self, k: int) -> Array:
        """A value of each level of a column: its codes, or one of each interval."""
        if k in self._borders:
            borders = self._borders[k].astype(np.float32)
            return np.append(borders, np.nextafter(borders[-1], np.float32(np.inf)))
        return self._taken[k]

    @cached_property
    def _taken(self) -> dict[int, Array]:
        """The codes of categories that the model takes: missing ones it may refuse."""
        found = {}
        for k in (own["flat_feature_index"] for own in self._categories):
            codes = np.arange(float(self.view.n_codes[self.sources[k].column] or 0))
            if self._takes(k, codes):
                found[k] = codes
            else:
                found[k] = np.array([c for c in codes.tolist() if self._takes(k, [c])])
        return found

    def _takes(self, k: int, codes: ArrayLike) -> bool:
        """Whether the model answers where a column has these codes."""
        from catboost import CatBoostError

        try:
            self.model.calc_leaf_indexes(self.view.sees(self._rows(k, codes)), 0, 1)
        except (CatBoostError, TypeError):  # None may raise either
            return False
        return True

    def _rows(self, k: int, values: ArrayLike) -> Points:
        """Rows that differ in column k alone."""
        points = np.tile(self.view.start, (np.size(values), 1))
        points[:, self.sources[k].column] = values
        return points

    # ---- what they answer

    @cached_property
    def _leaves(self) -> dict[tuple[int, ...], Indices]:
        """The leaf of each tree at all combinations of some columns, (..., trees)."""
        together = {self._columns(split) for split in self._all_splits}
        sizes = [[len(self._levels(k)) for k in columns] for columns in together]
        rows = sum(math.prod(shape) for shape in sizes)
        n_trees = len(self.saved["oblivious_trees"])
        if rows * n_trees > MOST_ANSWERS:
            raise ValueError(
                f"{n_trees:,} trees ask for {rows:,} combinations of categories, and "
                f"{MOST_ANSWERS:,} leaves are asked for at most"
            )
        return {columns: self._asked(columns) for columns in together}

    def _asked(self, columns: tuple[int, ...]) -> Indices:
        levels = [self._levels(k) for k in columns]
        shape = tuple(map(len, levels))
        points = np.tile(self.view.start, (math.prod(shape), 1))
        mesh = np.meshgrid(*levels, indexing="ij")
        for k, values in zip(columns, mesh, strict=True):
            points[:, self.sources[k].column] = values.ravel()
        found = np.asarray(self.model.calc_leaf_indexes(self.view.sees(points)))
        return found.reshape(*shape, -1)

    def numbers(self, table: Any) -> Array:
        """Numbers as they are, and codes of categories, (n, M)."""
        frame = as_frame(table, "X")
        seen = np.empty((len(table), len(self.sources)))
        for k in range(seen.shape[1]):
            cells = table[:, k] if frame is None else frame.table.iloc[:, k]
            if k in self._codes:
                seen[:, k] = [self._codes[k].get(cell, np.nan) for cell in cells]
            else:
                seen[:, k] = np.asarray(cells, dtype=np.float64)
        return seen

    @cached_property
    def _codes(self) -> dict[int, dict[Any, float]]:
        """The code of each category that the model is given, by column."""
        found = {}
        for k in (own["flat_feature_index"] for own in self._categories):
            codes = self._levels(k)
            given = self.view.sees(self._rows(k, codes))
            frame = as_frame(given, "X")
            cells = given[:, k] if frame is None else frame.table.iloc[:, k]
            found[k] = dict(zip(cells, codes.tolist(), strict=True))
        return found

    # ---- trees

    def tree(self, place: int, splits: Sequence[_Saved], values: Array) -> Tree | None:
        """Tree ``place``, whose split b is bit b of the place of a leaf."""
        answers = [self._answers(place, b, split) for b, split in enumerate(splits)]

        def read(at: tuple[int, int, _Levels, _Asked | None]) -> Split | float:
            """What is still asked: split b, by what columns are left of it."""
            b, leaf, known, asked = at
            if asked is None and b == len(splits):
                return float(values[leaf])
            if asked is None:
                split, table = splits[b], answers[b]
                yes, no = (
                    (b + 1, leaf | 1 << b, known, None),
                    (b + 1, leaf, known, None),
                )
                if table is None:
                    feature = self._floats[split["float_feature_index"]]
                    cut = float(at_most_in_single(split["border"]))
                    k, low = feature["flat_feature_index"], _is_low(feature)
                    return Split(int(k), cut, low, no, yes)
                columns = self._columns(split)
                every = [np.arange(size) for size in table.shape]
                came = [
                    known.get(k, own) for k, own in zip(columns, every, strict=True)
                ]
                asked = table[np.ix_(*came)], columns
            table, columns = asked
            if (table == table.flat[0]).all():
                return read((b + 1, leaf | int(table.flat[0]) << b, known, None))
            k, rest = columns[0], columns[1:]
            same = (table == table[0]).reshape(len(table), -1).all(axis=1)
            if same.all():
                return read((b, leaf, known, (table[0], rest)))
            return self._parted(at, asked, same)

        return written((0, 0, {}, None), read, MOST_NODES)

    def _parted(
        self, at: tuple[int, int, _Levels, Any], asked: _Asked, same: Mask
    ) -> Split:
        """A node that sends to the left the levels that are as the first one is."""
        (b, leaf, known, _), (table, columns) = at, asked
        k, levels = columns[0], known.get(columns[0], np.arange(len(table)))
        if k in self._borders:  # intervals are parted at one border
            same = np.arange(len(same)) < int(np.argmin(same))
        left = (b, leaf, {**known, k: levels[same]}, (table[same], columns))
        right = (b, leaf, {**known, k: levels[~same]}, (table[~same], columns))
        if k not in self._borders:
            n_codes = self.view.n_codes[self.sources[k].column] or 0
            codes = np.isin(np.arange(n_codes), self._levels(k)[levels[same]])
            return Split(k, np.inf, False, left, right, codes)
        border = self._borders[k][levels[same][-1]]
        low = next(_is_low(f) for f in self._floats if f["flat_feature_index"] == k)
        return Split(k, float(at_most_in_single(border)), low, left, right)

    def _answers(self, place: int, b: int, split: _Saved) -> Mask | None:
        """What split b of a tree answers at the levels of its columns."""
        if split["split_type"] == "FloatFeature":
            return None
        leaves = self._leaves[self._columns(split)][..., place]
        return np.asarray((leaves >> b) & 1, bool)


_Asked: TypeAlias = tuple[Mask, tuple[int, ...]]
"""What a split answers at the levels that come to a node, and of which columns."""


def _is_low(feature: _Saved) -> bool:
    """Whether what is missing is below all borders."""
    return bool(feature["nan_value_treatment"] != "AsTrue")


# ---- Trees of numbers, and which trees ask for categories


_CATBOOST_LOGITS: Final = frozenset({"CrossEntropy", "Logloss"})
"""Losses whose score is the log-odds."""

_CATBOOST_VALUES: Final = frozenset(
    {
        "Expectile",
        "Huber",
        "LogCosh",
        "Lq",
        "MAE",
        "MAPE",
        "MultiRMSE",
        "Quantile",
        "RMSE",
    }
)
"""Losses whose scores are what is predicted."""

_CATBOOST_SCORES: Final = "catboost.CatBoost", "catboost.CatBoostRanker"
"""Classes that predict scores, whatever their loss."""


def _trees(model: Any, output: ModelOutput, view: ColumnView) -> TreeSum | None:
    """A bias and the sum of trees, all times a scale."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        model.save_model(str(path), format="json")
        saved: dict[str, Any] = json.loads(path.read_text())
    scale, biases = saved["scale_and_bias"]
    loss = str(model.get_all_params().get("loss_function", "")).partition(":")[0]
    logit = 1.0 if loss in _CATBOOST_LOGITS else None
    is_value = loss in _CATBOOST_VALUES or class_name_of(model) in _CATBOOST_SCORES
    score = TreeScore.of(output, len(biases), is_value=is_value, logit=logit)
    kinds = {kind for kind, features in saved["features_info"].items() if features}
    asks_categories = kinds - {"float_features"}
    if score is None or not asks_categories <= {"categorical_features", "ctrs"}:
        return None  # text, or embeddings, are asked for
    weight = score.factor * scale
    base = score.factor * float(biases[score.place])
    if asks_categories:
        if "oblivious_trees" not in saved:
            return None  # leaves say what is answered by symmetric trees alone
        values = [
            weight * floats(tree["leaf_values"])[score.place :: len(biases)]
            for tree in saved["oblivious_trees"]
        ]
        return trees_of_categories(model, saved, view, values, base)
    features = saved["features_info"]["float_features"]
    columns = (
        np.array([f["flat_feature_index"] for f in features], np.intp),
        np.array([f["nan_value_treatment"] != "AsTrue" for f in features], bool),
    )
    if "oblivious_trees" in saved:
        trees: list[Tree | None] = [
            _symmetric(tree, columns, weight, score.place, len(biases))
            for tree in saved["oblivious_trees"]
        ]
    else:
        trees = [
            written(tree, partial(_catboost_split, columns, weight, score.place))
            for tree in saved["trees"]
        ]
    return sum_of_trees(trees, base, view)


_Columns: TypeAlias = tuple[Indices, Mask]
"""The places of columns of numbers, and whether what is missing there goes left."""


def _symmetric(
    tree: Mapping[str, Any], columns: _Columns, weight: float, index: int, count: int
) -> Tree:
    """A tree of d levels, a heap; bit b of a leaf's place is level b from below."""
    splits = list(reversed(tree["splits"] or []))
    depth, n_inner = len(splits), 2 ** len(splits) - 1
    level = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    feature = np.array([s["float_feature_index"] for s in splits], dtype=np.intp)[level]
    border = np.array([s["border"] for s in splits], dtype=np.float64)[level]
    values = weight * np.array(tree["leaf_values"], dtype=np.float64)[index::count]
    left = 2 * np.arange(n_inner) + 1
    place, missing_left = columns
    leaves = np.full(n_inner + 1, -1)
    return Tree.of(
        np.concatenate([place[feature], leaves]),
        np.concatenate([at_most_in_single(border), leaves]),
        np.concatenate([left, leaves]),
        np.concatenate([left + 1, leaves]),
        np.concatenate([np.zeros(n_inner), values]),
        np.concatenate([missing_left[feature], leaves > 0]),
    )


def _catboost_split(
    columns: _Columns, weight: float, index: int, node: Mapping[str, Any]
) -> Split | float:
    """A node of a tree whose nodes differ from each other."""
    if "split" not in node:
        return weight * float(np.ravel(node["value"])[index])
    (column, missing_left), split = columns, node["split"]
    feature, cut = split["float_feature_index"], at_most_in_single(split["border"])
    missing = bool(missing_left[feature])
    return Split(int(column[feature]), float(cut), missing, node["left"], node["right"])


# ---- What the library's classes are


def _path_values(model: Any, table: Any) -> Any:
    categories = model.get_cat_feature_indices()
    pool = require("catboost").Pool(table, cat_features=categories)
    return model.get_feature_importance(pool, type="ShapValues")


def _loss(model: Any) -> str:
    return str(model.get_all_params().get("loss_function"))


def _n_labels(model: Any) -> int:
    several = _loss(model) in ("MultiLogloss", "MultiCrossEntropy")
    return len(model.classes_) if several else 1


CATBOOST: Final[Mapping[str, ModelReader]] = {
    "catboost.CatBoost": replace(CONSTANT, trees=_trees, path_values=_path_values),
    "catboost.CatBoostClassifier": ModelReader(
        trees=_trees,
        margin=MarginRule(
            "predict",
            {"prediction_type": "RawFormulaVal"},
            lambda model: 1.0 if _loss(model) in _CATBOOST_LOGITS else None,
        ),
        takes_numbers=True,
        n_labels=_n_labels,
    ),
    "catboost.CatBoostRanker": ModelReader(trees=_trees),
    "catboost.CatBoostRegressor": ModelReader(trees=_trees, takes_numbers=True),
}

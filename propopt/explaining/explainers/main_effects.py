"""Main effects and interactions: what a column contributes by its value alone.

Two customers who differ in one column may well get different attributions there: that
follows from their main effects. What a column contributes by its value alone is centred
partial dependence over background rows b,

    g_j(x) = v({j}) − v(∅),   v({j}) = mean_b f(x_j, b elsewhere),   v(∅) = mean_b f(b),

by distinct values, at most N·B·D evaluations; of a sum of products Σ_l v_l Π_u g_u it
is Σ_{u of j} c_u g_u(x_j) less its mean, with c_u = mean_b Σ_{l with u} v_l Π_{w≠u}
g_w(b): exact, and without evaluations. An additive f has g_j = its own term, so that
nothing of it is context; of x₀x₁ over a symmetric background nothing is main effect.

With R(V) = Σ S_nn' ‖v_n − v_n'‖² the share of context in the differences of Φ is
R(Φ − G)/R(Φ), and that of main effect the rest; G is no projection, so that a share may
be negative. Of the context, contributions that add up need R of the rows' sums
t = (Φ − G)1, spread evenly: R(t)/D, for V ↦ R(V) is least at V = t1ᵀ/D.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_numeric_dtype

from propopt.base.arrays import Array, Attributions, Points, Values
from propopt.base.cards import N_ON_CARD, to_text
from propopt.base.checks import read_count, read_option
from propopt.base.declared import field
from propopt.base.document import Basis, Document, Finding, Table
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import NameKind, suggests_arguments
from propopt.base.text import for_quantity, in_percent, printable
from propopt.explaining.fidelity_front import FidelityRoughnessFront
from propopt.explaining.main_effect_rule import MainEffectRule, partial_dependence
from propopt.functions import Function
from propopt.functions.outputs import Output, Target
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import wrap_with_table
from propopt.laws.background import Background, affordable_rows
from propopt.laws.data_law import Reference
from propopt.losses import GradientMatching, PairwiseRobustness
from propopt.losses.graphs.points import Graph
from propopt.proofs.near_optimal import root_mean_square
from propopt.results.explanation import Explanation
from propopt.results.result import Result
from propopt.solvers.solving import solve
from propopt.tables.documents import is_documents
from propopt.tables.frames import Labels, as_frame, order_of
from propopt.tables.imported import aligned


LEAVES: Final = 24
FOLDS: Final = 5
FEWEST_OTHERS: Final = 600
"""Steps of a fitted curve; folds of its R²; other rows that it takes."""

MainEffectUnits: TypeAlias = Literal["output", "gradient"]
"""Parts of the output, or slopes."""


# ---- What each column contributes by its value alone


@final
class MainEffects(
    Result, kind="propopt main effects", noun="saved main effects", version=2
):
    """What each column of some rows contributes by its value alone.

    ``offset`` of :class:`propopt.PairwiseRobustness` takes it.

    Parameters
    ----------
    explanation : Explanation
        G (N, D) are its attributions; of a model centred, so that their mean over the
        background is zero. Its units are ``"output"``, parts of the output, or
        ``"gradient"``, slopes; its method says how it was made.
    background : str
        Whose rows the other columns are taken from, or curves were fitted on.
    n_background : int
        How many these are.
    r_squared : array (D,), optional
        Of fitted curves that of five folds, for each column; NaN of constant ones.
    r_squared_of_all : float, optional
        That of all columns together.
    """

    explanation: Explanation = field()
    background: str = field()
    n_background: int = field(low=1)
    r_squared: Array | None = field("D", default=None, high=1.0, missing=True)
    r_squared_of_all: float | None = field(default=None, high=1.0, missing=True)

    rows_are_named = True
    _words: ClassVar[NameKind | None] = "explanation"

    def __post_init__(self) -> None:
        super().__post_init__()
        fit, n_columns = self.r_squared, self.explanation.shape[1]
        if fit is not None and len(fit) != n_columns:
            raise InvalidInput(f"r_squared: expected {n_columns}, got {len(fit)}")

    def validate(self) -> None:
        """Refuse half a fit."""
        if (self.r_squared is None) != (self.r_squared_of_all is None):
            raise InvalidInput("r_squared: of columns and of all, or of neither")

    def __repr__(self) -> str:
        n_points, n_features = self.explanation.shape
        told = printable(self.explanation.method)
        return f"MainEffects({n_points} rows, {n_features} columns, {told})"

    def to_frame(self) -> pd.DataFrame:
        """G, with the names of rows and columns."""
        return self.explanation.to_frame()

    def findings(self) -> Iterator[Finding]:
        """How it was made, each sentence with what it rests on."""
        noun = "Background" if self.r_squared is None else "Fitted on"
        yield Finding(f"Main effect is {self.explanation.method}.", "chosen")
        yield Finding(f"{noun}: {self.background}.", "chosen")
        if self.r_squared_of_all is not None:
            fit = f"R² of {FOLDS} folds of these rows is {self.r_squared_of_all:.3f}."
            yield Finding(fit, "estimated")

    def document(self) -> Document:
        """How much of each column, and how it was made."""
        (N, D), G = self.explanation.shape, self.explanation.attributions
        names = self.explanation.labels.feature_names(D)
        sizes = [root_mean_square(g) for g in G.T]
        order = np.argsort(-np.array(sizes), kind="stable")[:N_ON_CARD].tolist()
        fit = self.r_squared
        rows = [
            [names[j], f"{sizes[j]:.3g}"] + ([] if fit is None else [f"{fit[j]:.3f}"])
            for j in order
        ]
        head = ("column", "root mean square", *(() if fit is None else ("R²",)))
        _, *others = self.findings()
        return Document(
            title=f"What {D} columns contribute by their value alone"
            f"{for_quantity(self.explanation.quantity)}",
            subtitle=f"{N:,} rows; {self.explanation.method}",
            blocks=[Table.of(head, rows), *others],
            trust=[
                Finding("computed, not drawn"),
                Finding("the definition and the background are chosen", "chosen"),
            ],
            settings={"model evaluations": f"{self.explanation.evaluations:,}"},
            chapters=self._table,
            names=names,
        )

    def difference_shares(
        self, attributions: object, graph: Graph, *, another: MainEffects | None = None
    ) -> DifferenceShares:
        """How much of the differences between similar rows is main effect, and context.

        Parameters
        ----------
        attributions : array, DataFrame, Explanation or shap.Explanation (N, D)
            Φ, in the units of G. In units of the output they are taken to add up, and
            what could go is what goes with the same sums of rows.
        graph : Graph
            Who is similar. One of nearest neighbours is also taken with half and with
            twice as many.
        another : MainEffects, optional
            Main effects of the same rows by another definition, to compare with.

        Returns
        -------
        DifferenceShares
            ``own``, ``context`` = ``needed`` + ``could_go`` and ``halving_cost``, which
            are shares, and their ``statements()``.

        Raises
        ------
        InvalidInput
            If there are other rows or columns than main effects are of.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> function = po.wrap(lambda x: x[:, 0] ** 2 + x[:, 1], data=X)
        >>> own = po.explainers.main_effects(function, X)
        >>> phi = po.explainers.Shap(data=X).explain(function, X)
        >>> own.context(phi, po.graphs.knn_graph(X, 8)).context < 1e-20
        True
        """
        phi = self._read(attributions, "attributions")
        if another is not None:
            W, labels = self._read(another, "another"), self.explanation.labels
            same = replace(another.explanation, attributions=W, labels=labels)
            another = replace(another, explanation=same)
        return DifferenceShares.of(phi, self, graph, another)

    def _read(self, carrier: object, label: str) -> Attributions:
        """Attributions of the same rows and columns, in their order."""
        own = self.explanation
        array = aligned(carrier, own.labels, label, "main effects")
        if array.shape != own.shape:
            raise InvalidInput(
                f"{label}: expected the shape of the main effects, {own.shape}, got "
                f"{array.shape}"
            )
        return array


@final
@dataclass(frozen=True, kw_only=True)
class DifferenceShares:
    """Of the squared differences between similar rows: main effect, context, its price.

    Shares of Σ S ‖φ_n − φ_n'‖²; own + needed + could go is one. None is clipped.
    """

    own: float  # follows from the rows' main effects; may be negative
    needed: float  # of the context, what sums of rows need; zero of slopes
    could_go: float  # the rest of the context
    halving_cost: float  # ‖W − Φ‖²/‖Φ‖² of the nearest without half of that
    gap: float  # the certified one of that optimum
    of_neighbors: dict[int, float]  # own, by the number of neighbours
    n_rows: int
    n_neighbors: int | None  # None of a graph that is none of nearest neighbours
    made: tuple[Finding, ...]  # how main effects were made
    another: tuple[float, str] | None = None  # own by another definition, which is told

    @property
    def difference_shares(self) -> float:
        """Needed, and what could go."""
        return self.needed + self.could_go

    @classmethod
    def of(
        cls,
        phi: Attributions,
        own: MainEffects,
        graph: Graph,
        another: MainEffects | None = None,
    ) -> DifferenceShares:
        """Of contributions Φ (N, D) beside their main effects."""
        G = own.explanation.attributions
        loss = PairwiseRobustness(graph, offset=G)
        front, adds_up = (
            FidelityRoughnessFront(phi, loss),
            own.explanation.units == "output",
        )
        total, left = front.plain, front.roughness
        needed = front.least if adds_up else 0.0
        needed = min(needed, left)  # but for rounding
        cost, gap = 0.0, 0.0
        if left - needed > _ROUNDING * max(total, left):
            sums = [front.totals] if adds_up else []
            limit = loss <= (left + needed) / 2.0
            best = solve(GradientMatching(phi), subject_to=[limit, *sums])
            assert best.certificate is not None, "it is optimized"
            cost, gap = best.certificate.value, best.certificate.gap
        told = None
        if another is not None:
            apart = loss.map.energy(phi - another.explanation.attributions)
            told = 1.0 - _share(apart, total), another.explanation.method
        known = graph.parameters.get("n_neighbors")
        count = None if known is None else int(known)
        others = {}
        if count is not None and graph.again is not None:
            for other in sorted({max(count // 2, 1), min(2 * count, len(phi) - 1)}):
                near = graph.again(other).differences
                left_there = near.energy(phi - G)
                others[other] = 1.0 - _share(left_there, near.energy(phi))
        return cls(
            own=1.0 - _share(left, total),
            needed=_share(needed, total),
            could_go=_share(left - needed, total),
            halving_cost=_share(cost, float(np.vdot(phi, phi))),
            gap=gap,
            of_neighbors=others,
            n_rows=len(phi),
            n_neighbors=count,
            made=tuple(own.findings()),
            another=told,
        )

    def findings(self, noun: str = "row") -> Iterator[Finding]:
        """What is found, each sentence with what it rests on; then how it was made."""
        if math.isnan(self.own):
            yield Finding(f"Similar {noun}s have the same attributions.", "checked")
            return
        is_fitted = any(said.basis == "estimated" for said in self.made)
        found: Basis = "estimated" if is_fitted else "checked"
        yield Finding(
            f"{_percent(self.own)} of the differences between similar {noun}s follow "
            "from their main effects.",
            found,
        )
        if self.of_neighbors:
            counts, ends = sorted(self.of_neighbors), sorted(self.of_neighbors.values())
            yield Finding(
                f"With {counts[0]} to {counts[-1]} neighbours it is "
                f"{_percent(ends[0])} to {_percent(ends[-1])}.",
                found,
            )
        if self.another is not None:
            share, definition = self.another
            told = f"By another definition it is {_percent(share)}: {definition}."
            yield Finding(told, "checked")
        yield Finding(
            f"Predictions need {_percent(self.needed)}; {_percent(self.could_go)} "
            "could go.",
            found,
        )
        if self.halving_cost > 0.0:
            cost = in_percent(self.halving_cost)
            text = f"Removing half of that costs {cost} of the squared sum."
            yield Finding(text, "proved")
        near = "" if self.n_neighbors is None else f", {self.n_neighbors} neighbours"
        yield Finding(f"Counted over {self.n_rows:,} {noun}s{near}.", "chosen")
        yield from self.made

    def document(self, noun: str = "row") -> Document:
        """All of them, in words for rows such as "patient"."""
        first, *others = self.findings(noun)
        return Document(title=first.sentence, blocks=others)

    def __str__(self) -> str:
        return to_text(self.document())


_ROUNDING: Final = 1e-12
"""Of the differences: less than that could go is nothing."""

_NOTHING: Final = 1e-9
_WHOLE: Final = 0.0095
"""Shares that are told as none, and from which they are whole per cent."""


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else math.nan


def _percent(share: float) -> str:
    """In whole per cent, or with a digit more where that is none."""
    if abs(share) < _NOTHING:
        return "0 %"
    return f"{100.0 * share:.0f} %" if abs(share) >= _WHOLE else in_percent(share)


@suggests_arguments
def main_effects(
    model: Any = None,
    X: Any = None,
    *,
    data: Any = None,
    fitted_on: tuple[Any, Any] | None = None,
    target: Target = None,
    output: Output = "auto",
    units: MainEffectUnits = "output",
    n_background: int | None = None,
) -> MainEffects:
    """What each column contributes by its value alone, at the rows of X.

    Of a model it is centred partial dependence over background rows b of ``data``,

    g_nj = mean_b f(x_nj, b elsewhere) − mean_b f(b),

    by distinct values: exact and without evaluations for trees and other sums of
    products, else by at most N·B·D evaluations. Without a model it is what curves say
    that were fitted to attributions of *other* rows: steps of 24 leaves of numbers,
    and means of categories.

    Parameters
    ----------
    model : estimator, torch module, callable or Function, optional
        See :func:`propopt.wrap`. Leave it out with ``fitted_on``.
    X : DataFrame or array (N, D)
        The rows that are explained.
    data : DataFrame, TableSchema or array, optional
        The table whose rows are the background; X by default. Of a schema without
        rows the background is X.
    fitted_on : pair of tables, optional
        Other rows and their attributions, at least 600, where there is no model.
    target, output
        Of :func:`propopt.wrap`.
    units : {"output", "gradient"}
        ``"gradient"``: slopes, mean_b ∂_j f(x_nj, b elsewhere), beside which
        attributions that are slopes are set.
    n_background : int, optional
        The most rows of the background. By default all that can be afforded, as for
        contributions: where some are drawn, the draw follows from the table.

    Returns
    -------
    MainEffects
        ``explanation.attributions`` are G (N, D).

    Raises
    ------
    InvalidInput
        If documents are given, or neither a model nor ``fitted_on``, or curves would be
        fitted on rows that they are asked for, which makes prices 15-43 % too low.

    Examples
    --------
    >>> import numpy as np, propopt as po
    >>> X = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    >>> additive = po.explainers.main_effects(lambda x: 2.0 * x[:, 0] + x[:, 1] ** 2, X)
    >>> additive.explanation.attributions[:, 0]
    array([-2., -2.,  2.,  2.])
    >>> joint = po.explainers.main_effects(lambda x: x[:, 0] * x[:, 1], X)
    >>> np.abs(joint.explanation.attributions).max()
    np.float64(0.0)
    """
    if X is None:
        raise InvalidInput("X: expected the rows that are explained, got none")
    if is_documents(X):
        raise InvalidInput("X: words of documents are there or not, and have no values")
    if (model is None) == (fitted_on is None):
        raise InvalidInput(
            "model: expected a model, or fitted_on=(other rows, their attributions), "
            f"and {'not both' if fitted_on else 'neither came'}"
        )
    if fitted_on is not None:
        return _fitted(X, fitted_on)
    read_option(units, MainEffectUnits, "units")
    function, told = wrap_with_table(model, X, target, output, data)
    points, labels = told.read(function, X, "X")
    table, own = (points, labels), "X"
    if isinstance(data, Sized):
        table, own = told.read(function, data, "data"), "data"
    reference = Reference.of_points(*table, function.schema)
    read = function.products_in(points.shape[1]) if units == "output" else None
    most = affordable_rows(read)
    if n_background is not None:
        most = read_count(n_background, "n_background")
    background = Background(reference.points, reference.n_rows).thinned(most)
    return main_effects_of(function, points, labels, background, own, units)


def main_effects_of(
    function: Function,
    points: Points,
    labels: Labels,
    background: Background,
    whose: str = "",
    units: MainEffectUnits = "output",
) -> MainEffects:
    """Those of rows that are read, over a background, of a table in words."""
    if isinstance(function, TextFunction):
        raise InvalidInput("X: words of documents are there or not, and have no values")
    if points.shape[1] != background.points.shape[1]:
        raise InvalidInput(
            f"data: expected {points.shape[1]} columns as in X, got "
            f"{background.points.shape[1]}"
        )
    before, names = function.calls.rows, labels.of_columns()
    if units == "gradient":
        G = partial_dependence(
            lambda x, j: function.gradient_at(x, names)[:, j], points, background
        )
        how = "the mean slope of its column over the background"
    else:
        rule = MainEffectRule.of(function, background, labels)
        G = rule.at(points, labels)
        how = f"centred partial dependence, {rule.by}"
    return MainEffects(
        explanation=Explanation(
            attributions=G,
            method=how,
            labels=labels,
            units=units,
            quantity=function.quantity,
            background=background.digest,
            evaluations=function.calls.rows - before,
        ),
        background=f"{background.in_words()}{f' of {whose}' if whose else ''}",
        n_background=len(background.points),
    )


# ---- Without a model: curves that were fitted to attributions of other rows


def _fitted(X: Any, fitted_on: Sequence[Any]) -> MainEffects:
    """Steps and means of other rows, at the rows of X."""
    if len(fitted_on) != 2:
        raise InvalidInput("fitted_on: expected (other rows, their attributions)")
    table, labels = _table(X, "X")
    others, names = _table(fitted_on[0], "fitted_on: its rows")
    order = order_of(
        names.features or (), labels.features or (), "fitted_on: its columns", "X"
    )
    phi = aligned(fitted_on[1], names, "fitted_on: attributions", "its rows")
    if order is not None:
        others, phi = others.iloc[:, order], phi[:, order]
    if phi.shape != others.shape or others.shape[1] != table.shape[1]:
        raise InvalidInput(
            f"fitted_on: expected rows and attributions of {table.shape[1]} columns, "
            f"got shapes {others.shape} and {phi.shape}"
        )
    _refuse_others(table, others)
    G = np.empty(table.shape)
    errors, sizes = np.empty((2, table.shape[1]))
    for j, own in enumerate(phi.T):
        column = others.iloc[:, j]
        G[:, j] = _curve(column, own, table.iloc[:, j]) - own.mean()
        errors[j] = ((own - _held_out(column, own)) ** 2).sum()
        sizes[j] = ((own - own.mean()) ** 2).sum()
    known = np.where(sizes > 0.0, sizes, np.nan)
    return MainEffects(
        explanation=Explanation(
            attributions=G,
            method=f"steps of {LEAVES} leaves, and means of categories, of fitted "
            "attributions",
            labels=labels,
            units="output",
        ),
        background=f"{len(others):,} other rows",
        n_background=len(others),
        r_squared=1.0 - errors / known,
        r_squared_of_all=1.0 - _share(errors.sum(), sizes.sum()),
    )


def _table(X: Any, label: str) -> tuple[pd.DataFrame, Labels]:
    frame = as_frame(X, label)
    if frame is not None:
        return frame.table, frame.labels
    return pd.DataFrame(np.asarray(X)), Labels()


def _refuse_others(table: pd.DataFrame, others: pd.DataFrame) -> None:
    """Refuse too few rows, and rows that curves are asked for."""
    if len(others) < FEWEST_OTHERS:
        raise InvalidInput(
            f"fitted_on: expected {FEWEST_OTHERS} other rows or more, got "
            f"{len(others)}; give the model instead, as main_effects(model, X)"
        )
    known = set(_rows(others))
    there = sum(row in known for row in _rows(table))
    if there:
        raise InvalidInput(
            f"fitted_on: {there} of the {len(table)} rows of X are among its rows; "
            "curves follow the rows that they are fitted to, which makes prices "
            "15-43 % too low; leave these rows out"
        )


def _rows(table: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """Rows as tuples; of numbers the digits that every file of them keeps."""
    plain = table.astype(object)
    for j, dtype in enumerate(table.dtypes):
        if is_numeric_dtype(dtype) and not is_bool_dtype(dtype):
            numbers = table.iloc[:, j].to_numpy(np.float64, na_value=np.nan)
            with np.errstate(over="ignore"):
                plain.isetitem(j, numbers.astype(np.float32).astype(object))
    return map(tuple, plain.where(plain.notna(), None).to_numpy().tolist())


def _curve(column: pd.Series[Any], phi: Values, at: pd.Series[Any]) -> Values:
    """Steps of a number, or means of categories, at other values."""
    if is_numeric_dtype(column.dtype) and not is_bool_dtype(column.dtype):
        from sklearn.tree import DecisionTreeRegressor

        tree = DecisionTreeRegressor(max_leaf_nodes=LEAVES, random_state=0)
        known, asked = (
            x.to_numpy(np.float64, na_value=np.nan)[:, None] for x in (column, at)
        )
        return np.asarray(tree.fit(known, phi).predict(asked))
    both = pd.concat([column, at]).astype(object)
    codes = pd.factorize(both, use_na_sentinel=False)[0]
    own, size = codes[: len(column)], int(codes.max()) + 1
    counts = np.bincount(own, minlength=size)
    sums = np.bincount(own, phi, minlength=size)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), phi.mean())
    return np.asarray(means[codes[len(column) :]])


def _held_out(column: pd.Series[Any], phi: Values) -> Values:
    """What curves say of rows that they were not fitted to, by folds."""
    fold = np.random.default_rng(0).permutation(len(phi)) % FOLDS
    held = np.empty(len(phi))
    for k in range(FOLDS):
        out = fold == k
        held[out] = _curve(column[~out], phi[~out], column[out])
    return held

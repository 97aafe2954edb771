"""Main effects of columns, and the differences of attributions that they explain.

Two customers who differ in one column have different attributions there because of its
main effect. The main effect is the centred partial dependence over background rows b,

    g_j(x) = v({j}) − v(∅),   v({j}) = mean_b f(x_j, b elsewhere),   v(∅) = mean_b f(b),

computed for distinct values by at most N·B·D evaluations. For a sum of products
Σ_l v_l Π_u g_u it is Σ_{u of j} c_u g_u(x_j) minus its mean, with
c_u = mean_b Σ_{l with u} v_l Π_{w≠u} g_w(b): exact and without evaluations. An additive
f has no interactions; x₀x₁ over a symmetric background has no main effects.

With R(V) = Σ S_nn' ‖v_n − v_n'‖², the share of interactions in the differences of Φ is
R(Φ − G)/R(Φ), and main effects explain the rest. G is no projection, so that share may
be negative. Complete contributions require a roughness of at least R(t)/D, for the row
sums t = (Φ − G)1, because R(V) is least at V = t1ᵀ/D.
"""

from __future__ import annotations

import math
from collections.abc import Sized
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, ClassVar, Final, Literal, TypeAlias, final

import numpy as np
import pandas as pd

from propopt.base.arrays import Attributions, Mask, Points
from propopt.base.cards import N_ON_CARD, to_text
from propopt.base.checks import read_count, read_option
from propopt.base.declared import field
from propopt.base.document import (
    Document,
    Fact,
    Facts,
    Span,
    Table,
    shape_text,
    share_text,
    subtitle_of,
    title_of,
)
from propopt.base.errors import InvalidInput
from propopt.base.suggestions import NameKind, suggests_arguments
from propopt.base.text import plural
from propopt.explaining.main_effect_rule import MainEffectRule, partial_dependence
from propopt.functions import Function
from propopt.functions.outputs import Output, Target
from propopt.functions.texts import TextFunction
from propopt.functions.wrapping import wrap_with_table
from propopt.laws.background import Background, Reference, affordable_rows
from propopt.losses import Completeness, GradientMatching, PairwiseRobustness
from propopt.losses.graphs.points import Graph
from propopt.results.clear import unit_of
from propopt.results.explanation import Explanation
from propopt.results.result import Result
from propopt.solvers.solving import solve
from propopt.structures.products.sums import SumOfProducts
from propopt.tables.frames import Labels, is_documents
from propopt.tables.imported import aligned


MainEffectUnits: TypeAlias = Literal["output", "gradient"]
"""Units of main effects: parts of the output, or slopes."""


# ---- Main effects as a result


@final
class MainEffects(
    Result, kind="propopt main effects", noun="saved main effects", version=2
):
    """The main effects of the columns at some rows.

    They can be the ``offset`` of :class:`propopt.PairwiseRobustness`.

    Parameters
    ----------
    explanation : Explanation
        Its attributions are G (N, D), whose mean over the background is zero for a
        model. Its units are ``"output"``, parts of the output, or ``"gradient"``,
        slopes; its method states how G was computed.
    background : str
        The rows that supply the other columns, in words.
    n_background : int
        The number of these rows.
    """

    explanation: Explanation = field()
    background: str = field()
    n_background: int = field(low=1)
    rows_are_named = True
    _words: ClassVar[NameKind | None] = "explanation"

    def to_frame(self) -> pd.DataFrame:
        """The main effects as a DataFrame (N, D), with the names of the input."""
        return self.explanation.to_frame()

    def document(self) -> Document:
        """Summarise the size of the main effect of each column, and its definition."""
        effects = self.explanation
        sizes = self.to_frame().abs().mean().sort_values(ascending=False, kind="stable")
        frame = sizes[:N_ON_CARD].rename("mean size").rename_axis("feature").to_frame()
        bars = [*map(Span.of, frame["mean size"])]
        what = "mean slopes over the background"
        if effects.units == "output":
            what = f"centred partial dependence, in {unit_of(effects.quantity)}"
        return Document(
            title=title_of("Main effects", effects.quantity),
            subtitle=subtitle_of(effects.quantity, shape_text(*effects.shape), what),
            blocks=[
                Table(frame, total=len(sizes), bars={"mean size": bars}),
                Facts([Fact("sampling error", 0.0, "%")]),
            ],
            settings={
                "method": effects.method,
                "background": self.background,
                "model evaluations": f"{effects.evaluations:,}",
            },
            chapters=self._table,
        )

    def difference_shares(self, attributions: object, graph: Graph) -> DifferenceShares:
        """Split differences between similar rows into main effects and interactions.

        Parameters
        ----------
        attributions : array, DataFrame, Explanation or shap.Explanation (N, D)
            Φ, in the units of G. Contributions are assumed to be complete, and
            differences count as removable if row sums allow it.
        graph : Graph
            The similar rows. For nearest neighbours, shares are also computed with half
            and with twice as many.

        Returns
        -------
        DifferenceShares
            With ``main_effects``, ``interactions`` = ``required`` + ``removable`` and
            ``halving_cost``.

        Raises
        ------
        InvalidInput
            If rows or columns differ from those of the main effects.

        Examples
        --------
        >>> import numpy as np, propopt as po
        >>> X = np.random.default_rng(0).normal(size=(30, 2))
        >>> function = po.wrap(lambda x: x[:, 0] ** 2 + x[:, 1], data=X)
        >>> effects = po.explainers.main_effects(function, X)
        >>> phi = po.explainers.Shap(data=X).explain(function, X)
        >>> shares = effects.difference_shares(phi, po.graphs.knn_graph(X, 8))
        >>> shares.interactions < 1e-20
        True
        """
        effects = self.explanation
        phi = aligned(attributions, effects.labels, "attributions", "main effects")
        if phi.shape != effects.shape:
            raise InvalidInput(
                "attributions: expected the shape of the main effects, "
                f"{effects.shape}, got {phi.shape}"
            )
        return DifferenceShares.of(phi, self, graph)


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class DifferenceShares:
    """Shares of the squared differences between similar rows, by their cause.

    Shares of Σ S ‖φ_n − φ_n'‖² that main effects explain, that row sums require, and
    that are removable. They sum to one and are not clipped.
    """

    # (N, D): Φ without main effects and without what row sums require
    rest: Attributions = dataclass_field(repr=False)

    main_effects: float  # explained by main effects; may be negative
    required: float  # the part of interactions that row sums require; 0 for slopes
    removable: float  # the rest of the interactions
    halving_cost: float  # least ‖W − Φ‖²/‖Φ‖² that halves the removable part
    by_neighbors: dict[int, float]  # main_effects, by the number of neighbours
    n_rows: int
    n_neighbors: int | None  # None if the graph is not one of nearest neighbours
    background: str  # the rows that supply the other columns

    @property
    def interactions(self) -> float:
        """The share that main effects do not explain: required and removable."""
        return self.required + self.removable

    @classmethod
    def of(
        cls,
        phi: Attributions,
        effects: MainEffects,
        graph: Graph,
        used: Mask | bool = False,
    ) -> DifferenceShares:
        """Split the differences of contributions Φ (N, D) by their main effects.

        ``used`` are columns of zeros that may have values, as the model uses them.
        """
        G = effects.explanation.attributions
        loss = PairwiseRobustness(graph, offset=G)
        energy = graph.differences.energy
        total = energy(phi)
        rest = phi - G
        remaining = energy(rest)
        required = 0.0
        sums: list[Completeness] = []
        if effects.explanation.units == "output":
            columns = used | phi.any(axis=0) | G.any(axis=0)
            weights = np.where(columns | ~columns.any(), 1.0, 0.0)
            needed = rest.sum(axis=1, keepdims=True) * weights / weights.sum()
            required = min(energy(needed), remaining)  # up to rounding
            rest = rest - needed
            sums.append(Completeness(phi @ weights, weights))
        cost = 0.0
        if remaining - required > _ROUNDING * max(total, remaining):
            limit = loss <= (remaining + required) / 2.0
            best = solve(GradientMatching(phi), subject_to=[limit, *sums])
            cost = best.losses["gradient_matching"]
        requested_neighbours = graph.parameters.get("n_neighbors")
        count = None if requested_neighbours is None else int(requested_neighbours)
        others = {}
        if count is not None and graph.again is not None:
            for other in sorted({max(count // 2, 1), min(2 * count, len(phi) - 1)}):
                differences = graph.again(other).differences
                without = differences.energy(phi - G)
                others[other] = 1.0 - _share(without, differences.energy(phi))
        return cls(
            rest=rest,
            main_effects=1.0 - _share(remaining, total),
            required=_share(required, total),
            removable=_share(remaining - required, total),
            halving_cost=_share(cost, float(np.vdot(phi, phi))),
            by_neighbors=others,
            n_rows=len(phi),
            n_neighbors=count,
            background=effects.background,
        )

    @property
    def numbers(self) -> dict[str, float]:
        """The shares, and the change that halves the removable one, by their labels."""
        numbers = {
            "main effects": self.main_effects,
            "required": self.required,
            "removable differences": self.removable,
            "change to halve them": math.sqrt(self.halving_cost),
        }
        return {k: 0.0 if abs(x) < _NOTHING else x for k, x in numbers.items()}

    @property
    def facts(self) -> list[Fact]:
        """The numbers, with the range for other numbers of neighbours."""
        ends = [*map(share_text, sorted(self.by_neighbors.values()))]
        counts = sorted(self.by_neighbors)
        notes = {}
        if counts:
            words = (
                f"{ends[0]} to {ends[-1]} for {counts[0]} to {counts[-1]} neighbours"
            )
            notes["main effects"] = words
        return [Fact(k, x, "%", note=notes.get(k, "")) for k, x in self.numbers.items()]

    def document(self) -> Document:
        """The shares as a card."""
        parts = [plural(self.n_rows, "row")]
        if self.n_neighbors is not None:
            parts.append(plural(self.n_neighbors, "neighbour"))
        return Document(
            title="Differences of similar rows",
            subtitle=subtitle_of(None, *parts, self.background),
            blocks=[Facts(self.facts)],
        )

    def __str__(self) -> str:
        return to_text(self.document())


_ROUNDING: Final = 1e-12
"""Removable differences below this share of all are rounding error."""

_NO_VALUES: Final = "X: expected a table of numbers or categories, got documents"

_NOTHING: Final = 1e-9
"""Shares that are shown as 0."""


def _share(part: float, whole: float) -> float:
    return part / whole if whole > 0.0 else math.nan


@suggests_arguments
def main_effects(
    model: Any,
    X: Any,
    *,
    data: Any = None,
    target: Target = None,
    output: Output = "auto",
    units: MainEffectUnits = "output",
    n_background: int | None = None,
) -> MainEffects:
    """Compute the main effect of each column at the rows of X.

    For a model it is the centred partial dependence over background rows b of ``data``,

    g_nj = mean_b f(x_nj, b elsewhere) − mean_b f(b),

    exact and without evaluations for trees and other sums of products, else by at most
    N·B·D evaluations.

    Parameters
    ----------
    model : estimator, torch module, callable or Function
        See :func:`propopt.wrap`.
    X : DataFrame or array (N, D)
        The explained rows.
    data : DataFrame, TableSchema or array, optional
        The table with the background rows; X by default, and for a schema without rows.
    target, output
        See :func:`propopt.wrap`.
    units : {"output", "gradient"}
        Parts of the output, or slopes, mean_b ∂_j f(x_nj, b elsewhere), as the offset
        of attributions that are slopes.
    n_background : int, optional
        The largest number of background rows. By default as many as contributions can
        afford; a sample depends only on the table.

    Returns
    -------
    MainEffects
        With G (N, D) as ``explanation.attributions``.

    Raises
    ------
    InvalidInput
        If X are documents, or ``data`` has other columns.

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
    if is_documents(X):
        raise InvalidInput(_NO_VALUES)
    read_option(units, MainEffectUnits, "units")
    function, reader = wrap_with_table(model, X, target, output, data)
    points, labels = reader.read(function, X, "X")
    table = (points, labels)
    source = "X"
    if isinstance(data, Sized):
        table = reader.read(function, data, "data")
        source = "data"
    reference = Reference.of_points(*table, function.schema)
    read = function.products_in(points.shape[1]) if units == "output" else None
    most = affordable_rows(read, len(reference.points))
    if n_background is not None:
        most = read_count(n_background, "n_background")
    background = Background(reference.points, reference.n_rows).thinned(most)
    return main_effects_of(function, points, labels, background, source, units)


def main_effects_of(
    function: Function,
    points: Points,
    labels: Labels,
    background: Background,
    source: str = "",
    units: MainEffectUnits = "output",
) -> MainEffects:
    """Main effects of encoded rows, over a background from a named table."""
    if isinstance(function, TextFunction):
        raise InvalidInput(_NO_VALUES)
    if points.shape[1] != background.points.shape[1]:
        raise InvalidInput(
            f"data: expected {points.shape[1]} columns as in X, got "
            f"{background.points.shape[1]}"
        )
    before = function.calls.rows
    names = labels.of_columns()
    if units == "gradient":
        G = partial_dependence(
            lambda x, j: function.gradient_at(x, names)[:, j], points, background
        )
        how = "the mean slope of its column over the background"
    else:
        rule = MainEffectRule.of(function, background, labels)
        G = rule.at(points, labels)
        has_structure = isinstance(rule.checked.structure, SumOfProducts)
        by = "computed exactly" if has_structure else "by evaluations of the model"
        how = f"centred partial dependence, {by}"
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
        background=f"{background.in_words()}{f' of {source}' if source else ''}",
        n_background=len(background.points),
    )

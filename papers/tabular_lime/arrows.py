"""A rectangle and a bump in two dimensions: one arrow for each cell of the bins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias, final

import numpy as np

from papers.engine.figure import PaperFigure
from papers.engine.findings import Claim, Finding, Invariant
from papers.engine.studies import Study, draw_charts
from papers.lime import functions
from papers.lime.charts import Arrows
from papers.lime.statements import FORMULA, equals
from papers.tabular_lime import formulas
from papers.tabular_lime.setups import uniform_data, uniform_law
from propopt.base.arrays import Array, Values
from propopt.lime.exact_limits import ExactLimits
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.structures.products.sums import SumOfProducts


_LOW, _HIGH = np.array([-4.0, -9.0]), np.array([0.0, -6.0])
_ZETA = np.array([-2.5, -2.5])
_KNOWN: Final = {
    "fig11": (
        ("in the cell of the rectangle", (0, 0), (0.1701, 0.1701)),
        ("where x1 alone is aligned", (0, 2), (0.1692, -0.0567)),
        ("where neither is", (2, 2), (-0.0564, -0.0564)),
    ),
    "fig15": (
        ("in the cell of the bump", (0, 0), (0.1551, 0.1224)),
        ("far away, where x1 is aligned", (0, 5), (0.1134, -0.0263)),
        ("where neither is", (5, 5), (-0.0178, -0.0178)),
    ),
}
"""Coefficients in the cell that lies so many bins further, cyclically."""


@final
@dataclass(frozen=True, eq=False, kw_only=True)
class CellMap:
    """Coefficients of two columns in each cell of the bins.

    Parameters
    ----------
    coefficients, printed : array (p, p, 2)
        As computed here, and by the paper's formula.
    edges : array (2, p + 1)
        Ends of bins.
    home : tuple of int
        The cell that the function is about.
    """

    coefficients: Array
    printed: Array
    edges: Array
    home: tuple[int, ...]

    def beside(self, along: int, across: int) -> Values:
        """(β_1, β_2) in the cell so many bins further than the home, cyclically."""
        p = self.coefficients.shape[0]
        i, j = self.home
        return np.asarray(self.coefficients[(i + along) % p, (j + across) % p])


CellStatement: TypeAlias = Callable[[CellMap], Finding]


def rectangle_figure() -> PaperFigure:
    """The indicator of a rectangle."""
    return _figure(
        "fig11",
        "Alignment artifacts of a rectangle",
        "The indicator of [−4, 0] × [−9, −6], 1000 training rows that are uniform over "
        "[−10, 10]², p = 4 and ν = 10. Arrows are (β_1, β_2) of all rows in a cell.",
        rectangle_cells,
        (partial(as_printed, name="Proposition 6"), partial(artifact, away=2)),
        partial(_arrows, box=(_LOW, _HIGH)),
    )


def bump_figure() -> PaperFigure:
    """A bump."""
    return _figure(
        "fig15",
        "Alignment artifacts of a bump",
        "exp(−‖x − ζ‖² / 2) with ζ = (−2.5, −2.5), the rows of figure 11, p = 10 and "
        "ν = 1. Arrows are (β_1, β_2) of all rows in a cell.",
        bump_cells,
        (
            partial(as_printed, name="Proposition 8"),
            partial(artifact, away=5),
            far_is_small,
        ),
        partial(_arrows, box=None),
    )


def rectangle_cells() -> CellMap:
    """In 4 × 4 cells."""
    law = uniform_law(_rows(), 4, 10.0)
    printed = partial(formulas.printed_box, _LOW, _HIGH, law)
    return _cells(
        functions.box_function(_LOW, _HIGH), law, printed, 0.5 * (_LOW + _HIGH)
    )


def bump_cells() -> CellMap:
    """In 10 × 10 cells."""
    law = uniform_law(_rows(), 10, 1.0)
    f = functions.gaussian_sum(_ZETA[None, :], np.ones(1), 1.0)
    return _cells(f, law, partial(formulas.printed_gaussian, _ZETA, 1.0, law), _ZETA)


def as_printed(cells: CellMap, *, name: str) -> Claim:
    """The paper's formula in every cell."""
    off = np.abs(cells.printed - cells.coefficients).max()
    return Claim(
        statement=f"{name} as printed gives the limits in all cells: largest "
        "difference, of the largest coefficient",
        value=float(off / np.abs(cells.coefficients).max()),
        sense="<=",
        limit=FORMULA,
    )


def is_known(
    cells: CellMap, *, where: str, place: tuple[int, int], known: tuple[float, float]
) -> Invariant:
    """The arrow of one cell, to the digits that are known."""
    statement = f"(β_1, β_2) {where} is {known}"
    return equals(statement, cells.beside(*place), np.array(known), 6e-5)


def artifact(cells: CellMap, *, away: int) -> Claim:
    """β_1 where only the first bin is shared, over β_1 at home."""
    here, there = cells.beside(0, 0)[0], cells.beside(0, away)[0]
    return Claim(
        statement="far away the coefficient of an aligned column is of the size that "
        "it has at home: β_1 over β_1",
        value=float(there / here),
        sense=">=",
        limit=0.5,
        note=f"{there:.4f} against {here:.4f}",
    )


def far_is_small(cells: CellMap) -> Claim:
    """|β| more than a bin away in both columns, over the largest."""
    p = cells.coefficients.shape[0]
    i, j = (np.abs(np.arange(p) - home) > 1 for home in cells.home)
    others = cells.coefficients[np.ix_(i, j)]
    return Claim(
        statement="cells more than a bin away in both columns have coefficients near "
        "zero: largest, over that at home",
        value=float(np.abs(others).max() / np.abs(cells.coefficients).max()),
        sense="<=",
        limit=0.15,
    )


def _rows() -> Array:
    return uniform_data(np.random.RandomState(3), 2)


def _cells(
    f: SumOfProducts,
    law: TabularLaw,
    printed: Callable[[Values], Values],
    home: Values,
) -> CellMap:
    edges = np.stack([[c.pieces.low[0], *c.pieces.high] for c in law.columns])
    middles = 0.5 * (edges[:, 1:] + edges[:, :-1])
    rows = np.stack(np.meshgrid(*middles, indexing="ij"), axis=2)
    flat = rows.reshape(-1, 2)
    return CellMap(
        coefficients=ExactLimits(f, law).of(flat).coefficients.reshape(rows.shape),
        printed=np.stack([printed(row)[1:] for row in flat]).reshape(rows.shape),
        edges=edges,
        home=tuple(formulas.places_of(law, home).tolist()),
    )


def _figure(
    name: str,
    title: str,
    about: str,
    measure: Callable[[], CellMap],
    statements: tuple[CellStatement, ...],
    charts: Callable[[CellMap], tuple[Arrows, ...]],
) -> PaperFigure:
    known = tuple(
        partial(is_known, where=where, place=place, known=values)
        for where, place, values in _KNOWN[name]
    )
    study = Study(
        column="all cells",
        measure=measure,
        statements=(*statements, *known),
        charts=charts,
    )
    return PaperFigure(
        title=title,
        about=about,
        panels=(study,),
        draw=partial(draw_charts, size=(5.0, 5.0)),
    )


def _arrows(cells: CellMap, *, box: tuple[Values, Values] | None) -> tuple[Arrows, ...]:
    return (
        Arrows(
            title="(β_1, β_2) in each cell",
            edges=cells.edges,
            coefficients=cells.coefficients,
            box=box,
            point=_ZETA if box is None else None,
        ),
    )

"""Laws by the name that they have in files and settings."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

from propopt.base.errors import InvalidInput
from propopt.lime.laws.binned_columns import BinWeights
from propopt.lime.laws.gaussian_law import GaussianLaw
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.tables.schema import TableSchema


LimeLawName: TypeAlias = Literal["tabular", "gaussian"]
"""Bins weighted by bits, or normal numbers weighted by their distance."""


def law_named(
    name: LimeLawName,
    table: Any,  # shape (m, D)
    schema: TableSchema | None = None,
    *,
    n_bins: int = 4,
    weights: BinWeights = "frequency",
    kernel_width: float | None = None,
) -> LimeLaw:
    """The law of that name, made of a table."""
    check_law_name(name, weights)
    if name == "gaussian":
        return GaussianLaw.from_data(
            table, schema, n_bins=n_bins, kernel_width=kernel_width
        )
    return TabularLaw.from_data(
        table, schema, n_bins=n_bins, kernel_width=kernel_width, weights=weights
    )


def check_law_name(name: object, weights: str) -> None:
    """Refuse a name of none, and weights that would have no effect."""
    if name not in get_args(LimeLawName):
        raise InvalidInput(
            f"law: expected 'tabular', 'gaussian' or a law of po.lime, got {name!r}"
        )
    if name == "gaussian" and weights != "frequency":
        raise InvalidInput("weights: the gaussian law has none; leave them out")

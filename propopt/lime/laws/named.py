"""Laws by the name that they have in files and settings."""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, Final, Literal, TypeAlias, get_args

from propopt.base.errors import InvalidInput
from propopt.base.extras import load_plugin, plugins
from propopt.lime.laws.binned_columns import BinWeights
from propopt.lime.laws.gaussian_law import GaussianLaw
from propopt.lime.laws.lime_law import LimeLaw
from propopt.lime.laws.tabular_law import TabularLaw
from propopt.tables.schema import TableSchema


LimeLawName: TypeAlias = Literal["tabular", "gaussian"]
"""Bins weighted by bits, or normal numbers weighted by their distance."""


def law_names() -> tuple[str, ...]:
    """All names, those of laws of other packages (``propopt.laws``) among them."""
    own: tuple[str, ...] = get_args(LimeLawName)
    return (*own, *(name for name in plugins("propopt.laws") if name not in own))


def law_named(
    name: str,
    table: Any,  # shape (m, D)
    schema: TableSchema | None = None,
    *,
    n_bins: int = 4,
    weights: BinWeights = "frequency",
    kernel_width: float | None = None,
) -> LimeLaw:
    """The law of that name, made of a table."""
    made = checked_law(name, n_bins, weights, kernel_width)
    given = {"n_bins": n_bins, "weights": weights, "kernel_width": kernel_width}
    taken = signature(made).parameters
    law = made(table, schema, **{k: v for k, v in given.items() if k in taken})
    if not isinstance(law, LimeLaw):
        raise InvalidInput(
            f"law: expected a LimeLaw, and {name!r} makes a {type(law).__name__}"
        )
    return law


def checked_law(
    name: object, n_bins: int, weights: str, kernel_width: float | None
) -> Callable[..., Any]:
    """What makes the law; refused are names of none, and settings without effect."""
    made: Callable[..., Any]
    if name not in law_names():
        known = ", ".join(map(repr, law_names()))
        raise InvalidInput(f"law: expected {known} or a law of po.lime, got {name!r}")
    if name == "tabular":
        made = TabularLaw.from_data
    elif name == "gaussian":
        made = GaussianLaw.from_data
    else:
        made = load_plugin(plugins("propopt.laws")[str(name)])
    taken = signature(made).parameters
    for setting, came, default in (
        ("n_bins", n_bins, 4),
        ("weights", weights, "frequency"),
        ("kernel_width", kernel_width, None),
    ):
        if came != default and setting not in taken:
            raise InvalidInput(
                f"{setting}: the {name} law has none; leave {_IT[setting]} out"
            )
    return made


_IT: Final = {"n_bins": "it", "weights": "them", "kernel_width": "it"}

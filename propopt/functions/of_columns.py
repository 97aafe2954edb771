"""Functions made of functions of one column each: their sum, or their product."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import final

import numpy as np

from propopt._typing import Array, Attributions, Points, Values
from propopt.errors import InvalidInput
from propopt.functions.base import EXACT, Function
from propopt.functions.differences import DEFAULT_STEP, describe_step
from propopt.structures.products import CurveRule, Curves, Products, SumOfProducts
from propopt.tables.names import Labels


@dataclass(frozen=True, eq=False, repr=False)
class OfColumns(Function):
    """A function that is made of D functions of one column each.

    Parameters
    ----------
    terms : sequence of callables or None (D,)
        f_j, from values (n,) of column j to numbers (n,); None of columns that the
        function does not depend on.
    slopes : sequence of callables or None (D,), optional
        f_j′; where they are left out they are central differences.
    knots : mapping of int to sequence of float
        By positions of columns, where their functions have kinks or jumps: means are
        found by quadrature between them.
    """

    terms: Sequence[CurveRule | None]
    slopes: Sequence[CurveRule | None] | None = field(default=None, kw_only=True)
    knots: Mapping[int, Sequence[float]] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        _check_rules(self.terms, "terms")
        if self.slopes is not None:
            _check_rules(self.slopes, "slopes")
            if [rule is None for rule in self.slopes] != self._absent:
                raise InvalidInput(
                    "slopes: expected one for each term, and None where that is None"
                )
        unknown = sorted(set(self.knots) - set(self._used))
        if unknown:
            raise InvalidInput(f"knots: no term has the positions {unknown}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._used)} terms)"

    @property
    def gradient_method(self) -> str:
        """``"exact"`` where slopes were given, else the rule of the differences."""
        return EXACT if self.slopes is not None else describe_step(DEFAULT_STEP)

    @property
    def _absent(self) -> list[bool]:
        return [term is None for term in self.terms]

    @cached_property
    def _used(self) -> dict[int, CurveRule]:
        return {j: term for j, term in enumerate(self.terms) if term is not None}

    @cached_property
    def _curves(self) -> Curves:
        knots = [
            np.unique(np.asarray(self.knots.get(j, ()), float)) for j in self._used
        ]
        columns = np.array([*self._used], np.intp)
        return Curves(columns, tuple(self._used.values()), tuple(knots))

    def _of_terms(self, points: Points) -> Array:
        """f_j(x_j), a row for each term (U, N)."""
        if points.shape[1] != len(self.terms):
            raise InvalidInput(
                f"X: {self!r} has {len(self.terms)} columns, got {points.shape[1]}"
            )
        return self._at(list(self._used.values()), points)

    def _at(self, rules: Sequence[CurveRule], points: Points) -> Array:
        values = np.empty((len(rules), len(points)))
        for u, (rule, j) in enumerate(zip(rules, self._used, strict=True)):
            values[u] = rule(points[:, j])
        return values

    def _slopes_of_terms(self, points: Points) -> Array:
        """f_j′(x_j), likewise."""
        if self.slopes is not None:
            return self._at([rule for rule in self.slopes if rule is not None], points)
        rules, step = (
            list(self._used.values()),
            DEFAULT_STEP * np.maximum(1.0, np.abs(points)),
        )
        up, down = points + step, points - step
        apart = (up - down)[:, list(self._used)].T
        return np.asarray((self._at(rules, up) - self._at(rules, down)) / apart)

    def _by_columns(self, of_terms: Array) -> Attributions:
        """Rows for terms as columns of the table; zero of those without one."""
        table = np.zeros((of_terms.shape[1], len(self.terms)))
        table[:, list(self._used)] = of_terms.T
        return table

    @property
    @abstractmethod
    def products(self) -> SumOfProducts:
        """The sum of products that it is by construction."""


@final
@dataclass(frozen=True, eq=False, repr=False)
class Additive(OfColumns):
    """f(x) = base + Σ_j f_j(x_j).

    Exact explanations by LIME of such a function do not depend on the kernel width.

    Parameters
    ----------
    base : float
        The constant.

    Examples
    --------
    >>> import numpy as np
    >>> import propopt as po
    >>> function = po.functions.Additive([np.sin, None, np.abs], knots={2: [0.0]})
    >>> function.value([[0.0, 9.0, -2.0]])
    array([2.])
    >>> function.gradient([[0.0, 9.0, -2.0]]).round(6)
    array([[ 1.,  0., -1.]])
    >>> function.products
    SumOfProducts(2 products of 2 factors (Curves) in 3 columns)
    """

    base: float = field(default=0.0, kw_only=True)

    @cached_property
    def products(self) -> SumOfProducts:
        """Its terms, a product each."""
        weights = np.ones(len(self._used))
        return SumOfProducts.additive(self.base, weights, self._curves, len(self.terms))

    def _value(self, points: Points, _: Labels, /) -> Values:
        return np.asarray(self.base + self._of_terms(points).sum(axis=0))

    def _gradient(self, points: Points, _: Labels, /) -> Attributions:
        return self._by_columns(self._slopes_of_terms(points))


@final
@dataclass(frozen=True, eq=False, repr=False)
class Multiplicative(OfColumns):
    """f(x) = scale · Π_j f_j(x_j).

    Parameters
    ----------
    scale : float
        The constant.

    Examples
    --------
    >>> import numpy as np
    >>> import propopt as po
    >>> function = po.functions.Multiplicative([np.sin, np.cos], scale=2.0)
    >>> function.value([[np.pi / 2, 0.0]])
    array([2.])
    >>> function.products
    SumOfProducts(1 products of 2 factors (Curves) in 2 columns)
    """

    scale: float = field(default=1.0, kw_only=True)

    @cached_property
    def products(self) -> SumOfProducts:
        """All its terms in one product."""
        paths = np.arange(len(self._used))[None, :]
        column = self._curves.column
        scale = np.array([self.scale])
        products = Products(0.0, scale, paths, column, len(self.terms))
        return SumOfProducts(products, (self._curves,))

    def _value(self, points: Points, _: Labels, /) -> Values:
        return np.asarray(self.scale * self._of_terms(points).prod(axis=0))

    def _gradient(self, points: Points, _: Labels, /) -> Attributions:
        terms = self._of_terms(points)
        others = np.ones(terms.shape)
        for u in range(len(terms)):
            others[u] = np.delete(terms, u, axis=0).prod(axis=0)
        return self._by_columns(self.scale * self._slopes_of_terms(points) * others)


def _check_rules(rules: object, name: str) -> None:
    """Refuse what is no sequence of callables, before it is asked."""
    if not isinstance(rules, Sequence) or not rules:
        raise InvalidInput(f"{name}: expected a sequence of callables, got {rules!r}")
    wrong = [rule for rule in rules if rule is not None and not callable(rule)]
    if wrong:
        raise InvalidInput(f"{name}: expected callables or None, got {wrong[0]!r}")
    if all(rule is None for rule in rules):
        raise InvalidInput(f"{name}: expected one callable at least")

"""What can be asked of an explanation: each setting declared once, with its checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias, final

import numpy as np

from propopt.base.checks import known_word
from propopt.base.errors import InvalidInput
from propopt.explaining.contributions import (
    ContributionChoice,
    ContributionsLike,
    FeatureMetric,
)
from propopt.explaining.targets import N_NEIGHBORS, LawChoice
from propopt.functions.outputs import Output, Target
from propopt.losses import Objective, PropertyLoss
from propopt.losses.graphs.points import Graph
from propopt.tables.schema import ColumnScale


if TYPE_CHECKING:
    from propopt.interactions.scores import ClearScores as ClearScores
    from propopt.interactions.scores import InteractionScores as InteractionScores
    from propopt.lime.text.text_reading import TextLaw as TextLaw
else:  # rooms that explaining a table has no use for, and does not load
    ClearScores = InteractionScores = TextLaw = Any


UnitsChoice: TypeAlias = Literal["scaled", "output"]
NeighborWeights: TypeAlias = Literal["uniform", "gaussian"]

MOST_REFERENCE_ROWS: Final = 500


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class ExplainSettings:
    """What :func:`propopt.explain` and :class:`propopt.Explainer` are asked.

    Their signatures, and the section ``explain`` of problem files, have these names and
    defaults; what each means is told there.
    """

    target: Target = None
    output: Output = "auto"
    outcome: str | None = None
    scale: ColumnScale = "std"
    units: UnitsChoice = "scaled"
    contributions: ContributionsLike = "shapley"
    metric: FeatureMetric = "uniform"
    law: LawChoice | TextLaw = "auto"
    graph: Graph | None = None
    same_pattern: bool = False
    n_neighbors: int = N_NEIGHBORS
    weights: NeighborWeights = "uniform"
    lengthscale: float | None = None
    robustness: float | None = None
    smoothness: Objective | PropertyLoss | None = None
    n_reference: int = MOST_REFERENCE_ROWS
    precision: float | None = None
    max_evaluations: int | None = None
    batch_rows: int | None = None
    interactions: InteractionScores | None = None
    rng: int | np.random.Generator | None = None

    @classmethod
    def of(cls, named: Mapping[str, Any]) -> Self:
        """Those among names and values, such as the arguments of a call."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: x for name, x in named.items() if name in known})

    @property
    def law_of_columns(self) -> LawChoice:
        """The law of the slopes of a table; one that deletes words is refused."""
        if not isinstance(self.law, str):
            from propopt.lime.text import text_reading

            if isinstance(self.law, text_reading.TextLaw):
                raise InvalidInput(
                    "law: a TextLaw deletes words of documents, and X is a table of "
                    "rows"
                )
        return self.law

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """Refuse the settings that are not as they are by default, with the reason."""
        for name, reason in reasons.items():
            value, default = getattr(self, name), getattr(type(self), name)
            same = isinstance(value, str | int | float) and value == default
            if not (value is default or same):
                raise InvalidInput(f"{name}: {reason}")

    def refuse_for_rows(self) -> None:
        """Refuse what rows by themselves do not take."""
        self.refuse(dict.fromkeys(_OF_SEVERAL_ROWS, _ALONE))
        known_word(self.units, UnitsChoice, "units")
        known_word(self.metric, FeatureMetric, "metric")
        if not isinstance(self.contributions, str):
            raise InvalidInput(
                "contributions: those of rows to come are not known; expected "
                "'shapley' or 'slopes', which an Explainer makes of any row. "
                "po.explain(model, X, contributions=table) explains several rows "
                "together"
            )
        known_word(self.contributions, ContributionChoice, "contributions")
        if self.units == "scaled":
            reason = "it is of units='output', and units is 'scaled'"
            self.refuse(dict.fromkeys(("contributions", "metric"), reason))
            return
        self.refuse({"smoothness": _NO_CLOSED_FORM})
        if self.contributions == "shapley":
            reason = (
                f"{self.law!r} is of slopes, and Shapley values take none; leave it "
                "out, or take contributions='slopes'"
            )
            self.refuse({"law": reason})


_OF_SEVERAL_ROWS: Final = ("same_pattern", "precision", "max_evaluations")

_ALONE: Final = (
    "one row is compared with fixed rows of data, where it has no meaning; leave it "
    "out, or give two rows or more"
)

_NO_CLOSED_FORM: Final = (
    "a row by itself that adds up has no closed form under it; leave it out with "
    "units='output', or solve all rows together by po.solve(objective, "
    "subject_to=[po.Completeness(total)])"
)

OF_TABLES: Final = {
    "scale": "words have no scale: their attributions are in units of the output",
    "metric": "over words that documents share all words count alike; leave it out",
    "same_pattern": "documents have no missing numbers; leave it out",
    "precision": "effects of words are exact; leave it out",
    "interactions": "they are of columns of a table, and documents have words",
    "max_evaluations": "effects of words take one text for each; leave it out",
}
"""What has no meaning for documents, and why."""

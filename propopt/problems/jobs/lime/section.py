"""The job of ``lime``: what LIME tends to at rows, and whether to trust it."""

from __future__ import annotations

from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    ClassVar,
    Final,
    Literal,
    Self,
    TypeAlias,
)

from pydantic import Discriminator, Field, Tag, model_validator

from propopt.errors import InvalidInput
from propopt.functions import Function
from propopt.lime.laws import LimeLaw
from propopt.lime.laws.named import law_named
from propopt.problems.baselines import Bins, Samples
from propopt.problems.extent import Extent
from propopt.problems.jobs.base import Job
from propopt.problems.kernel_widths import KernelWidths, listed_widths
from propopt.problems.parts import part
from propopt.problems.section import (
    MOST_NUMBERS,
    Count,
    Positive,
    Section,
    refuse_settings,
)
from propopt.problems.sources.base import Source


if TYPE_CHECKING:
    from propopt.problems.schema import ProblemSchema
    from propopt.problems.subject.subject import Subject


def _shape_of_rows(value: Any) -> str | None:
    match value:
        case int():
            return "count"
        case list():
            return "list"
    return None


RowNumber: TypeAlias = Annotated[int, Field(ge=0, le=MOST_NUMBERS)]
RowChoice: TypeAlias = Annotated[
    Annotated[Count, Tag("count")]
    | Annotated[list[RowNumber], Field(min_length=1), Tag("list")],
    Discriminator(
        _shape_of_rows,
        custom_error_type="rows_type",
        custom_error_message="expected how many rows, or a list of their numbers",
    ),
]


class LimeSection(Section):
    """The limits of LIME at some rows, by :func:`propopt.lime.limits`."""

    rows: RowChoice = Field(
        5,
        description="how many of the rows to explain, from the first; or the numbers "
        "of rows of the table, from 0, whether a model was fitted on them or not",
    )
    law: Literal["tabular", "gaussian"] = Field(
        "tabular",
        description="bins weighted by bits, as in the lime package; or normal numbers "
        "weighted by distance; of the rows that are fitted on",
    )
    n_bins: Bins = Field(4, description="of each column of numbers")
    weights: Literal["frequency", "uniform"] = Field(
        "frequency", description="how often bins of the tabular law are drawn"
    )
    kernel_width: Positive | None = Field(
        None, description="of tables; by default the package's, 0.75 √D"
    )
    bandwidth: Positive = Field(
        0.25,
        description="of documents, a hundredth of the package's kernel_width, which is "
        "25 by default",
    )
    words: Literal["lime", "model"] = Field(
        "lime",
        description="of documents, what is deleted: words as the package has them, or "
        "those that the model counts",
    )
    n_samples: Annotated[Samples, Field(ge=2)] = Field(
        5000,
        description="of one run of LIME, for its noise and its mean; and draws around "
        "each row where nothing is known exactly",
    )
    path: KernelWidths | None = Field(
        None,
        description="kernel widths at which coefficients are written too; of documents "
        "bandwidths",
    )
    diagnose: bool = Field(
        True, description="look for what coefficients hide, which takes a while"
    )

    @model_validator(mode="after")
    def _weights_of_bins(self) -> Self:
        if self.law == "gaussian":
            refuse_settings(self, "law: gaussian", ("weights",))
        return self

    @property
    def widths(self) -> list[float]:
        """Those of the path."""
        return [] if self.path is None else listed_widths(self.path)

    def build(self, subject: Subject) -> LimeLaw:
        """The law of the rows that a model is fitted on."""
        return law_named(
            self.law,
            subject.others,
            subject.function.schema,
            n_bins=self.n_bins,
            weights=self.weights,
            kernel_width=self.kernel_width,
        )

    def check(self, extent: Extent) -> None:
        """Refuse more rows than there are."""
        if isinstance(self.rows, int):
            if self.rows > extent.n_points:
                raise InvalidInput(
                    f"rows: expected at most the {extent.n_points} rows to explain, "
                    f"got {self.rows}"
                )
        elif max(self.rows) >= extent.n_rows:
            raise InvalidInput(
                f"rows: expected numbers below {extent.n_rows}, of rows of the table, "
                f"got {max(self.rows)}"
            )


_NOT_OF_TABLES: Final = dict.fromkeys(
    ("bandwidth", "words"), "has no effect without data.text"
)
_NOT_OF_TEXTS: Final = {
    **dict.fromkeys(("law", "n_bins", "weights"), "has no effect with data.text"),
    "kernel_width": "of documents give bandwidth, a hundredth of it: the package's 25 "
    "is 0.25",
}


class LimeKeys(Section):
    """The keys of an explanation by LIME."""

    lime: LimeSection | None = Field(
        None,
        description="what the coefficients of LIME tend to, exactly, and what they "
        "hide; {} takes all defaults",
    )


class LimeJob(Job):
    """``propopt lime``: see :func:`propopt.problems.run_limits`."""

    key: ClassVar[str] = "lime"
    command: ClassVar[str] = "propopt lime"
    keys: ClassVar[type[Section]] = LimeKeys
    suffixes: ClassVar[tuple[str, ...]] = (
        "_lime.csv",
        "_diagnosis.csv",
        "_path.csv",
        ".svg",
        ".html",
        ".npz",
        ".json",
    )

    def check(self, schema: ProblemSchema, source: Source) -> None:
        assert schema.lime is not None
        unused = _NOT_OF_TABLES if schema.data.text is None else _NOT_OF_TEXTS
        for name, message in unused.items():
            if name in schema.lime.model_fields_set:
                raise source.error(("lime", name), message)

    def check_extent(self, schema: ProblemSchema, extent: Extent) -> None:
        assert schema.lime is not None
        with part("lime"):
            schema.lime.check(extent)

    def check_formula(
        self, schema: ProblemSchema, function: Function, points: Any
    ) -> None:
        del schema
        function.value(points)

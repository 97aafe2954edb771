"""Sections on how predictors without features are had."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Discriminator, Field, Tag

from propopt.errors import InvalidInput
from propopt.interactions import DataSplit, Minipatches
from propopt.interactions.features import Features
from propopt.interactions.left_out import LeftOut
from propopt.interactions.minipatches.drawing.counts import check_order
from propopt.interactions.minipatches.drawing.patches import ColumnSampling
from propopt.interactions.minipatches.means import PatchErrors
from propopt.interactions.minipatches.scheme import RowSampling
from propopt.interactions.scheme import Scheme
from propopt.problems.section import Count, Section


def _kind_of_size(value: Any) -> str | None:
    match value:
        case bool():
            return None
        case int():
            return "count"
        case float():
            return "share"
        case "sqrt":
            return "sqrt"
    return None


BelowOne: TypeAlias = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
RowsSetting: TypeAlias = Annotated[
    Annotated[Count, Tag("count")]
    | Annotated[BelowOne, Tag("share")]
    | Annotated[Literal["sqrt"], Tag("sqrt")],
    Discriminator(
        _kind_of_size,
        custom_error_type="patch_rows_type",
        custom_error_message="expected how many rows, a share of them such as 0.2, or "
        "sqrt",
    ),
]
FeaturesSetting: TypeAlias = Annotated[
    Annotated[Count, Tag("count")] | Annotated[BelowOne, Tag("share")],
    Discriminator(
        _kind_of_size,
        custom_error_type="patch_features_type",
        custom_error_message="expected how many features, or a share of them such as "
        "0.5",
    ),
]


class SchemeSection(Section):
    """How predictors without features are had."""

    @abstractmethod
    def build(self) -> Scheme:
        """The scheme of these settings.

        Raises
        ------
        InvalidInput
            If they do not go together.
        """

    def resumed(self, folder: Path) -> Scheme:
        """The same, which goes on from what is finished in a folder.

        Parameters
        ----------
        folder : Path
            Made if it is not there.

        Raises
        ------
        InvalidInput
            If nothing that it fits can be kept in files.
        """
        del folder
        raise InvalidInput(
            "--resume: only minipatches are kept in files; leave it out, or "
            "take {kind: minipatches}"
        )

    def is_whole(self, source: LeftOut) -> bool:
        """Whether all that these settings ask for was fitted.

        Parameters
        ----------
        source : LeftOut
            By the scheme of these settings.
        """
        del source
        return True

    def check(self, n_rows: int, features: Features, order: int) -> None:
        """Refuse what does not fit a table, before anything is fitted.

        Parameters
        ----------
        n_rows : int
            Of the table.
        features : Features
            That may be left out.
        order : int
            How many at once.

        Raises
        ------
        InvalidInput
            If settings do not go together, or patches cannot be drawn.
        """
        del n_rows, features, order
        self.build()


class MinipatchesSection(SchemeSection):
    """An ensemble on random rows and features, by :class:`Minipatches`."""

    kind: Literal["minipatches"]
    n_patches: Annotated[int, Field(ge=2, le=10_000_000)] = Field(
        10_000, description="how many; each is one fit of the model"
    )
    rows: RowsSetting = Field(
        0.2,
        description="of a patch: how many, a share, or sqrt, at which intervals are "
        "proved",
    )
    n_features: FeaturesSetting | None = Field(
        None,
        description="of a patch: how many, or a share; by default half of up to 20, "
        "and a fifth of more",
    )
    columns: ColumnSampling = Field(
        "bernoulli",
        description="each feature by itself with that chance, so that pairs that do "
        "not interact score zero in the mean; or exactly so many, as in the paper",
    )
    row_sampling: RowSampling = Field(
        "uniform", description="from all rows, or from each class by its share"
    )
    n_groups: Annotated[int, Field(ge=2, le=1000)] | None = Field(
        None,
        description="of patches, by which the error of few patches is told; by default "
        "20, or as many as there are patches",
    )

    def build(self) -> Minipatches:
        return Minipatches(**self.model_dump(exclude={"kind"}))

    def resumed(self, folder: Path) -> Minipatches:
        return replace(self.build(), folder=folder)

    def is_whole(self, source: LeftOut) -> bool:
        assert isinstance(source, PatchErrors)
        return len(source.patches) == self.build().n_patches

    def check(self, n_rows: int, features: Features, order: int) -> None:
        check_order(self.build().usable(n_rows, features), order)


class SplitSection(SchemeSection):
    """One fit for each set of features, by :class:`DataSplit`."""

    kind: Literal["split"]
    test_size: BelowOne = Field(0.5, description="the share of rows that are held out")
    n_folds: Annotated[int, Field(ge=2, le=10_000)] | None = Field(
        None, description="so many folds instead, of which each is held out in turn"
    )
    stratify: bool = Field(False, description="draw from each class alike")

    def build(self) -> DataSplit:
        return DataSplit(**self.model_dump(exclude={"kind"}))


AnyScheme: TypeAlias = Annotated[
    MinipatchesSection | SplitSection, Field(discriminator="kind")
]
"""The schemes that a file may name."""

MINIPATCHES: Final = MinipatchesSection.model_validate({"kind": "minipatches"})
"""With all defaults, where a file names none."""

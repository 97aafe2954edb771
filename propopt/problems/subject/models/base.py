"""What all models of a problem file have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import Field
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from propopt.errors import InvalidInput
from propopt.problems.section import Label, Section
from propopt.problems.subject.models.code import Code
from propopt.problems.subject.models.smooth import Smooth
from propopt.problems.subject.models.vectorizers import (
    AnyVectorizer,
    VectorizerSection,
)
from propopt.tables.names import listed


TaskKind: TypeAlias = Literal["classification", "regression"]


@dataclass(frozen=True, kw_only=True)
class Making:
    """What a section needs to make its model, beside its own settings.

    Parameters
    ----------
    folder : Path
        That of the problem file: where files are that it names.
    seed : int or None
        That of the problem file; None for models that are seeded at each fit.
    task : str or None
        What is learned; None where it is not known, or not needed.
    columns : tuple of str
        Those of the table, or numbers as names.
    categorical : tuple of str
        The columns that are categories.
    code : Code
        Whether Python objects may be imported.
    vectorizer : VectorizerSection or None
        What makes numbers of documents; None where there are none.
    """

    folder: Path
    seed: int | None
    task: TaskKind | None = None
    columns: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    code: Code = Code.REFUSED
    vectorizer: VectorizerSection | None = None


class ModelSection(Section):
    """A model, and the output of it that is explained.

    A subclass has a ``kind``, settings with their defaults, and ``make``; its place in
    ``AnyModel`` makes it one of the models that a file may name.
    """

    words: ClassVar[str] = "a model"
    """What messages call it."""
    needs_task: ClassVar[bool] = False
    """Whether it learns classes or numbers, as it is told."""
    needs_target: ClassVar[bool] = True
    """Whether it is fitted, to a table and its target."""
    takes_texts: ClassVar[bool] = False
    """Whether it learns documents, or may have learned them."""
    takes_missing: ClassVar[bool] = False
    """Whether numbers may be missing, as far as this is known before it is fitted."""

    output: Literal["auto", "value", "probability", "log_odds", "margin"] = "auto"
    smooth: Smooth | None = Field(
        None,
        description="take the slopes of the mean of the model, under gaussian noise by "
        "default; models that jump, such as trees, have those over observed values",
    )

    @property
    def chosen_class(self) -> Label | None:
        """The class to explain, where there are classes."""
        return None

    @abstractmethod
    def make(self, making: Making) -> Any:
        """An estimator, to be fitted or fitted already, or a callable.

        Raises
        ------
        InvalidInput
            If there is no such model.
        MissingExtra
            If it needs a package that is not installed.
        """

    def check_size(self, n_columns: int, n_outputs: int, n_rows: int) -> None:
        """Refuse, before it is fitted, a model that would not fit into memory."""
        del n_columns, n_outputs, n_rows

    def check_missing(self, columns: Sequence[str]) -> None:
        """Refuse columns of numbers in which some are missing, where that is known."""
        if columns and not self.takes_missing:
            raise InvalidInput(
                f"{self.words} takes no missing numbers, and some are in "
                f"{listed(columns)}; take kind: hist_gradient_boosting, or import a "
                "pipeline that imputes them first"
            )

    def check_table(self, model: Any, table: Any) -> None:
        """Refuse a table on which the model has no gradient worth its name."""
        del model, table


class ClassesSection(ModelSection):
    """A model that may know classes."""

    target_class: Label | None = Field(None, description="label to explain")

    @property
    def chosen_class(self) -> Label | None:
        return self.target_class


class LearnedSection(ModelSection):
    """A model of scikit-learn's kind, which learns a table or documents."""

    takes_texts: ClassVar[bool] = True

    vectorizer: AnyVectorizer | None = Field(
        None,
        description="of documents: what is counted, and how; by default kind: tfidf",
    )


class TaskSection(LearnedSection, ClassesSection):
    """A model that learns classes or numbers, as it is told."""

    needs_task: ClassVar[bool] = True

    task: TaskKind | None = Field(None, description="known for scikit-learn's tables")


def scaled(estimator: Any, making: Making) -> Any:
    """The estimator behind what makes numbers of the same size from columns.

    Of documents it gets what their vectorizer gives.
    """
    if making.vectorizer is not None:
        return make_pipeline(making.vectorizer.make(), estimator)
    categorical = making.categorical
    if not categorical:
        return make_pipeline(StandardScaler(), estimator)
    # a category that occurs only in rows to explain has no indicator
    encoder = OneHotEncoder(handle_unknown="ignore")
    categories = ("categories", encoder, list(categorical))
    columns = ColumnTransformer([categories], remainder=StandardScaler())
    return make_pipeline(columns, estimator)

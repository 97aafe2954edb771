"""The key ``vectorizer`` of a model: what it counts in documents."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, TypeAlias

import numpy as np
from pydantic import Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from propopt.errors import InvalidInput
from propopt.memory import require_memory
from propopt.problems.section import Count, Section, one_of


def _shape_of_words(value: Any) -> str | None:
    match value:
        case str():
            return "name"
        case list():
            return "list"
    return None


StopWords: TypeAlias = Annotated[
    Annotated[Literal["english"], Tag("name")] | Annotated[list[str], Tag("list")],
    Discriminator(
        _shape_of_words,
        custom_error_type="words_type",
        custom_error_message="expected 'english', or a list of words",
    ),
]
Share: TypeAlias = Annotated[float, Field(gt=0, le=1)]
MOST_OF_A_GRAM: Final = 20


class VectorizerSection(Section):
    """What counts words: settings and defaults are those of scikit-learn's class.

    Of its settings those are not here that are code or take numbers from elsewhere;
    ``import`` a pipeline for these. A pattern of one's own is code, too: there are some
    that never end.
    """

    lowercase: bool = True
    strip_accents: Literal["ascii", "unicode"] | None = None
    stop_words: StopWords | None = Field(
        None, description="words that are not counted: a list of them, or english"
    )
    token_pattern: Literal[r"(?u)\b\w\w+\b", r"(?u)\b\w+\b"] = Field(
        r"(?u)\b\w\w+\b", description="the second pattern counts single letters, too"
    )
    ngram_range: list[Annotated[int, Field(ge=1, le=MOST_OF_A_GRAM)]] = Field(
        [1, 1], description="the fewest words in a row that are counted, and the most"
    )
    min_df: Count = Field(1, description="in how many documents it stands at least")
    max_df: Share = Field(1.0, description="in what share of documents at most")
    max_features: Count | None = Field(None, description="those that come most often")
    binary: bool = Field(False, description="whether it is there, not how often")

    @model_validator(mode="after")
    def _from_few_to_many(self) -> Self:
        lengths = self.ngram_range
        if len(lengths) != 2 or lengths[0] > lengths[1]:
            raise PydanticCustomError(
                "ngram_range",
                "ngram_range: expected two numbers, the smaller first, such as [1, 2]",
            )
        return self

    @abstractmethod
    def make(self) -> Any:
        """The vectorizer, to be fitted."""

    def vocabulary(self, texts: Sequence[str]) -> list[str]:
        """The words that are counted in documents, or runs of words.

        Raises
        ------
        InvalidInput
            If no word is left, or what is said of the words contradicts itself.
        Refused
            If memory does not suffice.
        """
        least, most = self.ngram_range
        n_grams = sum(map(len, texts)) / 2.0 * (most - least + 1)
        n_bytes = n_grams * (60.0 + 6.0 * most)
        require_memory(n_bytes, "so many n-grams", "take shorter ones")
        try:
            with warnings.catch_warnings(action="ignore"):  # they come with the model
                return [*self.make().fit(texts).vocabulary_]
        except ValueError as error:
            raise InvalidInput(f"in the documents to fit on: {error}") from None

    def _settings(self) -> dict[str, Any]:
        own = self.model_dump(exclude={"kind"})
        return own | {"ngram_range": tuple(self.ngram_range), "dtype": np.float64}


class CountVectorizerSection(VectorizerSection):
    """How often each word comes."""

    kind: Literal["counts"]

    def make(self) -> Any:
        return CountVectorizer(**self._settings())


class TfidfVectorizerSection(VectorizerSection):
    """How often each word comes, more where few documents have it, to length one."""

    kind: Literal["tfidf"]
    norm: Literal["l1", "l2"] | None = "l2"
    use_idf: bool = True
    smooth_idf: bool = True
    sublinear_tf: bool = False

    def make(self) -> Any:
        return TfidfVectorizer(**self._settings())


VECTORIZERS: Final[tuple[type[VectorizerSection], ...]] = (
    CountVectorizerSection,
    TfidfVectorizerSection,
)
TFIDF: Final = TfidfVectorizerSection.model_validate({"kind": "tfidf"})
"""What documents are learned by where nothing else is said."""

if TYPE_CHECKING:
    AnyVectorizer: TypeAlias = VectorizerSection
else:
    AnyVectorizer = one_of(VECTORIZERS, "kind")

"""Torch modules that take texts: values alone, as texts have no gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from propopt._typing import Values
from propopt.functions.answers import Answers
from propopt.functions.models.torch_modules import TorchModel
from propopt.tables.names import Labels


@final
@dataclass(frozen=True, eq=False)
class TorchTexts:
    """One output of a torch module that is given lists of texts, in evaluation mode.

    Parameters
    ----------
    model : TorchModel
        The module, and what its scores mean.
    """

    model: TorchModel

    def __call__(self, texts: list[str], _: Labels) -> Values:
        """Values, shape (n,)."""
        return self.model.answers_to(list(texts), len(texts))

    def answers(self, texts: list[str], labels: Labels) -> Answers:
        """Values, with the precision in which the module computed."""
        return Answers(self(texts, labels), self.model.epsilon)

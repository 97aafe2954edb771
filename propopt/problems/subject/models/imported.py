"""A model of your own: an object of a Python module."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from propopt.errors import InvalidInput
from propopt.problems.parts import part
from propopt.problems.subject.models.base import ClassesSection, Making
from propopt.problems.subject.models.code import Code


def _module_and_object(path: str) -> str:
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*", path):
        raise PydanticCustomError(
            "object_path",
            "expected module:object, such as package.module:model, got {came}",
            {"came": repr(path[:60])},
        )
    return path


class ImportedModel(ClassesSection):
    """A fitted estimator, a callable, or an estimator to be fitted on the table.

    An estimator of scikit-learn's kind that is not fitted (``check_is_fitted``) is
    cloned, seeded where it has a ``random_state`` of None, and fitted to the table as
    it is; anything else is taken as :func:`propopt.wrap` takes it. Modules are found as
    ``import`` finds them: installed, or on ``PYTHONPATH``; the folder of the problem
    file is not searched.
    """

    words: ClassVar[str] = "an imported model"
    needs_target: ClassVar[bool] = False
    takes_texts: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = True  # itself it says whether

    kind: Literal["imported"] = "imported"
    path: Annotated[str, AfterValidator(_module_and_object)] = Field(
        alias="import",
        description="module:object; needs --allow-code, since an import runs code",
    )

    def make(self, making: Making) -> Any:
        with part("import"):
            return self._object(making.code)

    def _object(self, code: Code) -> Any:
        if code is Code.REFUSED:
            raise InvalidInput(
                f"importing {self.path} runs Python code; add --allow-code to the "
                "command (code=Code.ALLOWED in Python) if you trust it"
            )
        module, _, names = self.path.partition(":")
        try:
            return reduce(getattr, names.split("."), _module(module))
        except AttributeError as error:
            raise InvalidInput(f"{self.path}: {error}") from None


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise InvalidInput(
            f"{name} could not be imported: {error}; install it, or add its folder "
            "to PYTHONPATH"
        ) from error

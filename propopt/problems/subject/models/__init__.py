"""The section ``model``: which models a file may name; each is one class."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, get_args

from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from propopt.problems.subject.models.imported import ImportedModel
from propopt.problems.subject.models.onnx import OnnxModel
from propopt.problems.subject.models.scaled import (
    LinearModel,
    LogisticModel,
    NetworkModel,
)
from propopt.problems.subject.models.trees import (
    ExtraTreesModel,
    ForestModel,
    GradientBoostingModel,
    HistGradientBoostingModel,
    LightGbmModel,
    TreeModel,
)


Registered: TypeAlias = (
    LinearModel
    | LogisticModel
    | NetworkModel
    | TreeModel
    | ForestModel
    | ExtraTreesModel
    | GradientBoostingModel
    | HistGradientBoostingModel
    | LightGbmModel
    | ImportedModel
    | OnnxModel
)
MODEL_KINDS = get_args(Registered)
"""Every model that a file may name."""

_BY_KIND = {get_args(m.model_fields["kind"].annotation)[0]: m for m in MODEL_KINDS}
_KEYS = {
    model: {f.alias or n for n, f in model.model_fields.items()}
    for model in MODEL_KINDS
}
_BY_KEY = {"import": "imported", "onnx": "onnx_file"}


def _with_kind(value: Any) -> Any:
    """``import`` and ``onnx`` say what kind it is; keys of other kinds are refused."""
    if not isinstance(value, dict):
        return value
    if "kind" not in value:
        kinds = [{"kind": kind} for key, kind in _BY_KEY.items() if key in value]
        value = {**next(iter(kinds), {}), **value}
    kind = value.get("kind")
    own = _KEYS.get(_BY_KIND.get(kind)) if isinstance(kind, str) else None
    if own is not None:
        _refuse_keys_of_others(set(value) - own, kind)
    return value


def _refuse_keys_of_others(keys: set[str], kind: str) -> None:
    for name in sorted(keys & set().union(*_KEYS.values())):
        raise PydanticCustomError(
            "no_effect",
            "{name} has no effect with {chosen}",
            {"name": name, "chosen": kind},
        )


AnyModel: TypeAlias = Annotated[
    Annotated[Registered, Field(discriminator="kind")], BeforeValidator(_with_kind)
]

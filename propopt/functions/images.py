"""Images as points, and classifiers of them."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from propopt.base.arrays import Array, Points
from propopt.base.checks import read_count
from propopt.base.errors import InvalidInput
from propopt.base.extras import require
from propopt.base.words_of_others import knows_other_words
from propopt.losses.graphs.points import SimilarityGraph, pixel_graph
from propopt.losses.operators import LatticeLaplacian
from propopt.tables.frames import listed


if TYPE_CHECKING:
    import torch

Module: TypeAlias = "torch.nn.Module"
Tensor: TypeAlias = "torch.Tensor"


# ---- Images as points: every image is a row, every explanation of a row an image


@final
@knows_other_words
@dataclass(frozen=True)
class ImageShape:
    """The shape (C, H, W) of images that are explained as rows of D = C·H·W features.

    Features stand in row-major order: channel, then row, then column.

    Parameters
    ----------
    channels, height, width : int
        C, H and W, each at least one.

    Raises
    ------
    InvalidInput
        If a size is not an integer of at least one.

    Examples
    --------
    >>> import numpy as np
    >>> from propopt.functions import ImageShape
    >>> shape = ImageShape(channels=3, height=4, width=5)
    >>> images = np.random.default_rng(0).random((2, 3, 4, 5))
    >>> rows = shape.rows(images)
    >>> rows.shape
    (2, 60)
    >>> bool((shape.images(rows) == images).all())
    True
    >>> shape.pixel_graph()
    <pixel graph: 60 nodes, 93 edges, channels=3, height=4, width=5>
    """

    channels: int
    height: int
    width: int

    def __post_init__(self) -> None:
        read_count(self.channels, "channels")
        read_count(self.height, "height")
        read_count(self.width, "width")

    @property
    def sizes(self) -> tuple[int, int, int]:
        """(C, H, W)."""
        return self.channels, self.height, self.width

    @property
    def n_features(self) -> int:
        """D = C·H·W."""
        return self.channels * self.height * self.width

    def rows(self, images: ArrayLike) -> Points:
        """Images (N, C, H, W) as points (N, D).

        Raises
        ------
        InvalidInput
            If the images have another shape.
        """
        array = np.asarray(images, dtype=np.float64)
        if array.ndim != 4 or array.shape[1:] != self.sizes:
            raise InvalidInput(
                f"images: expected shape (N, {self.channels}, {self.height}, "
                f"{self.width}), got {array.shape}"
            )
        return array.reshape(len(array), self.n_features)

    def images(self, rows: ArrayLike) -> Array:
        """Points or attributions (N, D) as images (N, C, H, W).

        Raises
        ------
        InvalidInput
            If the rows have another length.
        """
        array = np.asarray(rows, dtype=np.float64)
        if array.ndim != 2 or array.shape[1] != self.n_features:
            raise InvalidInput(
                f"rows: expected shape (N, {self.n_features}), got {array.shape}"
            )
        return array.reshape(len(array), *self.sizes)

    def pixel_graph(self) -> SimilarityGraph:
        """Each pixel with its up to four neighbours in the same channel.

        Channels are not joined: the similarities are I_C ⊗ S, with S of the
        ``pixel_graph`` of one channel.
        """
        one = pixel_graph(self.height, self.width).similarities
        all_channels = sp.csr_array(sp.kron(sp.eye_array(self.channels), one))
        parameters = {
            "channels": self.channels,
            "height": self.height,
            "width": self.width,
        }
        sizes = (self.channels, self.height, self.width)
        lattice = LatticeLaplacian(sizes, (0.0, 1.0, 1.0))
        graph = SimilarityGraph(all_channels, "pixel", parameters)
        graph.lattice = lattice
        return graph


# ---- Image classifiers by name, with weights that the user has: nothing is downloaded


IMAGENET_MEAN: Final = (0.485, 0.456, 0.406)
IMAGENET_STD: Final = (0.229, 0.224, 0.225)
"""Of the channels red, green and blue in [0, 1], over ImageNet."""


@knows_other_words
def torchvision_model(
    architecture: str,
    weights: str | Path | None = None,
    *,
    n_classes: int = 1000,
) -> Module:
    """A classifier of torchvision for RGB images in [0, 1], in evaluation mode.

    Its first layer is the normalisation by ImageNet's mean and standard deviation, so
    that gradients are with respect to the pixels as they are seen. Its parameters ask
    for no gradients: those of the pixels are all that is wanted.

    Parameters
    ----------
    architecture : str
        A name that ``torchvision.models.get_model`` knows, such as ``"resnet50"``.
    weights : str or Path, optional
        A file with the weights of that architecture (its ``state_dict``), saved by
        ``torch.save``; random weights by default. Nothing is downloaded.
    n_classes : int
        The number of scores.

    Returns
    -------
    torch.nn.Module
        Images (n, 3, H, W) to scores (n, n_classes).

    Raises
    ------
    MissingExtra
        If torchvision is not installed.
    InvalidInput
        If the architecture is not known, or the file is not one of its weights.

    Notes
    -----
    With weights of one's own, for the score of class 207::

        classifier = po.functions.torchvision_model("resnet50", "resnet50.pth")
        function = po.wrap(classifier, target=207, input_shape=(3, 224, 224))
    """
    models, torch = require("torchvision.models"), require("torch")
    names = models.list_models(module=models)
    if architecture not in names:
        raise InvalidInput(
            f"architecture: torchvision has no classifier {architecture!r}; it has "
            f"{listed(names)}"
        )
    classifier = models.get_model(architecture, weights=None, num_classes=n_classes)
    if weights is not None:
        load_weights(classifier, weights)
    layers = normalisation(IMAGENET_MEAN, IMAGENET_STD), classifier
    return torch.nn.Sequential(*layers).eval().requires_grad_(False)


@knows_other_words
def normalisation(mean: Sequence[float], std: Sequence[float]) -> Module:
    """A layer that takes channel c of an image to (x_c − mean_c) / std_c.

    Parameters
    ----------
    mean, std : sequence of float (C,)
        One of each for every channel, the latter > 0.

    Raises
    ------
    InvalidInput
        If there are not as many of both, or a deviation is not positive.
    """
    torch = require("torch")
    means, stds = torch.tensor(mean), torch.tensor(std)
    if means.shape != stds.shape or means.ndim != 1 or not (stds > 0).all():
        raise InvalidInput(
            "std: expected one number > 0 for each mean, got "
            f"{list(mean)} and {list(std)}"
        )
    n_channels = len(means)
    # x / std − mean / std, channel by channel
    layer = torch.nn.Conv2d(n_channels, n_channels, kernel_size=1, groups=n_channels)
    layer.requires_grad_(False)
    layer.weight.copy_((1 / stds).reshape(layer.weight.shape))
    layer.bias.copy_(-means / stds)
    return layer


@knows_other_words
def load_weights(module: Module, path: str | Path) -> None:
    """Give ``module`` the weights in a file: tensors by name, and nothing executable.

    Parameters
    ----------
    module : torch.nn.Module
        Its parameters and buffers are overwritten.
    path : str or Path
        A ``state_dict`` saved by ``torch.save``.

    Raises
    ------
    InvalidInput
        If the file cannot be read as weights, or has other names or shapes than the
        module; then the module is left as it was.
    """
    weights = _read_weights(Path(path))
    own = {name: tuple(value.shape) for name, value in module.state_dict().items()}
    theirs = {name: tuple(value.shape) for name, value in weights.items()}
    differences = [n for n in {**own, **theirs} if own.get(n) != theirs.get(n)]
    if differences:
        raise InvalidInput(
            f"weights: {path} is not of this architecture; it is missing, unexpected "
            f"or of another shape: {listed(differences)}"
        )
    module.load_state_dict(weights)


def _read_weights(path: Path) -> Mapping[str, Tensor]:
    torch = require("torch")
    try:
        contents = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        reason = str(error).partition("\n")[0]
        raise InvalidInput(f"weights: {path} cannot be read: {reason}") from error
    if not isinstance(contents, Mapping) or not all(
        isinstance(value, torch.Tensor) for value in contents.values()
    ):
        raise InvalidInput(
            f"weights: {path} holds no state_dict, a mapping from names to tensors"
        )
    return contents

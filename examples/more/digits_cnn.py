"""Which pixels make a handwritten 3 an 8, for a small convolutional network.

The network is trained on scikit-learn's digits. The log-odds of "8" are explained for
64 unseen threes and eights: by gradients, by SmoothGrad, and by optimized maps that are
smooth over neighbouring pixels and similar for similar digits. The plot is saved to
results/digits_cnn.png.
"""

from importlib.util import find_spec
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import propopt as po


if find_spec("torch") is None:
    raise SystemExit('this example needs torch: pip install "propopt[torch]"')

import torch
from torch import nn


SHAPE = po.functions.ImageShape(channels=1, height=8, width=8)
EIGHT = 8


def trained(images, digits):
    """Two convolutions and a linear layer, after 15 passes over the images."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(16, 32, kernel_size=3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.25),
        nn.Linear(32 * 4 * 4, 10),
    )
    inputs = torch.tensor(SHAPE.images(images), dtype=torch.float32)
    labels = torch.tensor(digits)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(15):
        for rows in torch.randperm(len(inputs)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(inputs[rows]), labels[rows]).backward()
            optimizer.step()
    return network


X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
network = trained(X_train, y_train)
with torch.no_grad():
    scores = network.eval()(torch.tensor(SHAPE.images(X_test), dtype=torch.float32))
print(f"accuracy on unseen digits: {(scores.argmax(1).numpy() == y_test).mean():.3f}")

function = po.wrap(network, target=EIGHT, output="log_odds", input_shape=SHAPE)
explained = X_test[np.isin(y_test, [3, EIGHT])][:64]
print(f"{len(explained)} images of {SHAPE.n_features} pixels, {function!r}")

objective = (
    po.GradientMatching(function.estimate(explained))
    + 0.1 * po.PairwiseRobustness(po.graphs.knn_graph(explained, n_neighbors=5))
    + 0.1 * po.Smoothness(SHAPE.pixel_graph())
)
baselines = [
    po.explainers.Gradient().explain(function, explained),
    *(
        po.explainers.SmoothGrad(scale=scale).explain(function, explained, rng=0)
        for scale in (0.1, 0.2, 0.4, 0.8)
    ),
]
weights = np.geomspace(1e-3, 10, 9)
curve = po.sweep(
    objective, {"pairwise_robustness": weights, "smoothness": weights}, baselines
)

columns = ["method", "parameter.scale", "excess"]
print("\nexcess of each baseline over the optimum, for the weights that suit it best:")
print(curve.distances()[columns].round(3).to_string(index=False))

best = po.solve(objective)
smoothgrad = baselines[2]
print("\nlosses of the maps in the plot:")
maps = [baselines[0], smoothgrad, best]
for one in maps:
    losses = {loss.name: loss.value(one.attributions) for loss in objective.losses}
    total = objective.value(one.attributions)
    row = "  ".join(f"{name} {value:7.0f}" for name, value in losses.items())
    print(f"{one.method:10} {row}  objective {total:7.0f}")
print(f"certified relative gap of the optimum: {best.gap:.0e}")

others = {"gradient": baselines[0], "SmoothGrad": smoothgrad}
figure = best.plot.images(SHAPE, range(6), next_to=others).figure
picture = Path("results", "digits_cnn.png")
picture.parent.mkdir(exist_ok=True)
figure.savefig(picture, dpi=120)
plt.close(figure)
print(f"wrote {picture}")

"""Log an explanation to MLflow: its page, its table, its archive, and its explainer.

    pip install -e ".[mlflow,boosting]"
    python examples/more/log_to_mlflow.py

The run of MLflow gets the explanation as files, with the gap as a metric. The fitted
explainer becomes an MLflow model that explains new rows. It consists of a text file of
trees, an archive of arrays, and this file as its code, so nothing is pickled. After
loading, it gives identical attributions.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import lightgbm
import mlflow
import pandas as pd
from sklearn.datasets import load_diabetes

import propopt as po


class AttributionsModel(mlflow.pyfunc.PythonModel):
    """A model of MLflow whose predictions are attributions."""

    def load_context(self, context: Any) -> None:
        """Load both files; an explainer of another model is refused."""
        trees = lightgbm.Booster(model_file=context.artifacts["trees"])
        self.explainer = po.Explainer.load(context.artifacts["explainer"], trees)

    def predict(
        self, context: Any, model_input: pd.DataFrame, params: Any = None
    ) -> pd.DataFrame:
        """The attributions of each row, with the names of the columns."""
        del context, params
        return self.explainer.explain(model_input).to_frame()


mlflow.models.set_model(AttributionsModel())  # the model in this file


def main(folder: Path) -> None:
    """Explain, log, load, and compare."""
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    data = lightgbm.Dataset(X[100:], y[100:])
    settings = {"objective": "regression", "verbose": -1, "num_threads": 1}
    trees = lightgbm.train(settings, data, num_boost_round=40)
    best = po.explain(trees, X[:100], data=X[100:], outcome="progression")
    explainer = po.Explainer(trees, data=X[100:], outcome="progression").fit()

    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    mlflow.create_experiment("progression", (folder / "artifacts").as_uri())
    mlflow.set_experiment("progression")
    with mlflow.start_run() as run:
        mlflow.log_params(best.weights)
        mlflow.log_metrics({"gap": best.gap or 0.0, **best.losses})
        files = {"page.html": best.to_html, "table.csv": best.to_csv}
        for name, write in {**files, "explanation.npz": best.save}.items():
            write(folder / name)
            mlflow.log_artifact(str(folder / name))
        trees.save_model(folder / "trees.txt")
        explainer.save(folder / "explainer.npz")
        model = mlflow.pyfunc.log_model(
            name="attributions",
            python_model=__file__,
            artifacts={
                "trees": str(folder / "trees.txt"),
                "explainer": str(folder / "explainer.npz"),
            },
            signature=mlflow.models.infer_signature(X, best.to_frame()),
            pip_requirements=["propopt", f"lightgbm=={lightgbm.__version__}"],
        )
    logged = mlflow.artifacts.list_artifacts(run_id=run.info.run_id)
    print("logged:", ", ".join(sorted(Path(one.path).name for one in logged)))

    loaded = mlflow.pyfunc.load_model(model.model_uri)
    again, direct = loaded.predict(X[:20]), explainer.explain(X[:20]).to_frame()
    print("the same attributions, loaded back:", again.equals(direct))
    archive = mlflow.artifacts.download_artifacts(
        run_id=run.info.run_id, artifact_path="explanation.npz"
    )
    print(po.results.Explanation.load(archive))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))

"""The estimators of scikit-learn by their names, whichever of its modules has them."""

from importlib import import_module


MODULES = """
linear_model tree ensemble preprocessing svm feature_extraction.text feature_selection
compose impute decomposition naive_bayes neighbors neural_network model_selection
gaussian_process kernel_ridge multioutput multiclass calibration discriminant_analysis
pipeline cluster mixture
"""


class Estimators:
    def __getattr__(self, name):
        for module in MODULES.split() if name[:1].isupper() else ():
            if result := getattr(import_module(f"sklearn.{module}"), name, None):
                return result
        raise AttributeError(name)


sk = Estimators()

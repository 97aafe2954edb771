"""The structure of fitted models, independent of functions and explanations."""

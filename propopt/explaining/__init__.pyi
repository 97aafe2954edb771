from . import explainers as explainers
from . import null_models as null_models

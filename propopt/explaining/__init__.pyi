from . import explainers as explainers
from . import metrics as metrics
from . import null_models as null_models

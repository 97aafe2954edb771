from . import functions as functions
from . import inductive as inductive
from . import interactions as interactions
from . import lime as lime
from . import losses as losses
from . import plots as plots
from . import problems as problems
from . import results as results
from . import solvers as solvers
from .base import errors as errors
from .explaining import explainers as explainers
from .explaining import metrics as metrics
from .explaining import null_models as null_models
from .explaining.audit import audit as audit
from .explaining.comparison import compare as compare
from .explaining.first_look import explain as explain
from .explaining.one_by_one import Explainer as Explainer
from .explaining.sweeping import sweep as sweep
from .explaining.trade_offs import TradeOffs as TradeOffs
from .functions.wrapping import wrap as wrap
from .losses import graphs as graphs
from .losses.faithfulness import GradientMatching as GradientMatching
from .losses.robustness import PairwiseRobustness as PairwiseRobustness
from .losses.robustness import Smoothness as Smoothness
from .losses.robustness import Sparsity as Sparsity
from .solvers.solving import solve as solve

__version__: str

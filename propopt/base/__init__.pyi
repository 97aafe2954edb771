from . import errors as errors

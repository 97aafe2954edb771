from .certificate import Certificate as Certificate
from .certifying import certify as certify

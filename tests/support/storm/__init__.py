"""A storm of random problems, judged by definitions in extended precision.

``definitions`` says what the losses are, term by term, and shares nothing with the
library; ``graphs``, ``targets`` and ``problems`` draw; ``rivals`` finds explanations
otherwise; ``verdict`` holds a result against them.
"""

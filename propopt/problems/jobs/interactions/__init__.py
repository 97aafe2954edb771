"""The job of ``interactions``: how much features matter jointly to a learner."""

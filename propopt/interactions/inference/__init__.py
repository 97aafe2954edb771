"""Standard errors, intervals and tests of scores."""

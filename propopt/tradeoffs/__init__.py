"""Trade-offs: sweeps of weights, what they found, and the frontier they enclose."""

"""The curve of all weights of two losses: eigenvalues, Krylov spaces, bounds."""

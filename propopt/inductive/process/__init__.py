"""The Gaussian process itself: prior, posterior, and what they say under weights."""

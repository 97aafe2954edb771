"""LIME on texts: what it tends to, and what its coefficients hide."""

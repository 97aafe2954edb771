"""What LIME's coefficients hide."""

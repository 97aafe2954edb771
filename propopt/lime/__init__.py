"""What LIME converges to, exactly, and what its coefficients hide."""

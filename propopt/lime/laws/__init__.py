"""Laws by which LIME draws, codes and weights samples."""

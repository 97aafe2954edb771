"""Little, Zheng and Allen on iLOCO: its simulations, intervals and times made anew."""

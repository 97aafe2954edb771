"""Functions that are models: asked, read, differentiated."""

"""Jobs: what a file asks to be done with its subject; each is one section."""

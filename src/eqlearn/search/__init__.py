"""Tables to equations: what is tried, in which order, and what is kept."""

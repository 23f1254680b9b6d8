"""What a search found, for the eye: graphs, figures, data frames, a live display."""

"""What a user knows of a law before any search, and how the search makes use of it."""

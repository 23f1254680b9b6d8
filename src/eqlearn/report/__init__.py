"""What was found, for the eye: a record, a page, pictures, a display."""

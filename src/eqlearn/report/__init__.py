"""What a search leaves behind: a run folder and one self-contained page."""

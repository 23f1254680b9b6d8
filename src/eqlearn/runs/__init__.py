"""Searches that leave a folder, survive a kill and can be taken up again."""

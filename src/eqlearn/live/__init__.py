"""A page on this machine that shows searches while they run, and starts others."""

"""Files: tables, trajectories, images, data sets that ship, and what the library itself writes."""

"""The paper's experiments, their pages and baselines: the first user of the public names."""

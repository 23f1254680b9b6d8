"""The paper's two dynamical systems: their data, their recipes, one trial of each."""

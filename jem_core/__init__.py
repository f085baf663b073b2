"""Joint energy-based models of many attributes: the science, and nothing else."""

"""Small experiments whose figures stand in train/README.md; each is a module to run with python -m."""

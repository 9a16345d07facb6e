"""Whole pipelines over real data, run by `deltic demo`. They use what a user of the library uses, and nothing else."""

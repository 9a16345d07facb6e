"""Deltic against its peers: `python -m benchmarks.NAME` prints progress to stderr and, last on stdout, one JSON object."""

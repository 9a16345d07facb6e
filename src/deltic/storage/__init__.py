"""State that outlives the process: immutable data files, and one manifest per epoch that makes them real.

A state folder has `data/` (files.py, layout.py), `manifests/` (manifest.py, history.py), `generations/` (state.py),
`leases/` (leases.py) and, on file systems, `lock`. docs/state.md describes them for users.
Nothing read from it is ever unpickled or evaluated: data files are raw words with a JSON directory, manifests are JSON.
"""

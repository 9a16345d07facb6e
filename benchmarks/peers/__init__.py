"""The engines of the comparison, one module each; `engine()` returns the engine that benchmarks.drive runs. `differential/` is in Rust."""

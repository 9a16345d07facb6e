"""The engines to compare with, one module each; a module's `engine()` makes what benchmarks.drive runs. `differential/` is Rust's."""

"""What exists: models, chips, slices, dtypes, workloads. Frozen data, no input or output."""

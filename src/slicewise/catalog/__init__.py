"""Facts: chips, slices, prices and models, each figure with its source, and model configs from disk."""

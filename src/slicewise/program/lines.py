"""Lines of the ledger that a program's arrays belong to."""

WEIGHTS, WEIGHT_SCALES, CACHE, CACHE_SCALES, INPUTS = "weights", "weight scales", "KV cache", "KV scales", "inputs"
LINES = (WEIGHTS, WEIGHT_SCALES, CACHE, CACHE_SCALES, INPUTS)
SCALES = (WEIGHT_SCALES, CACHE_SCALES)
"""Those that a plan's ledger does not have."""

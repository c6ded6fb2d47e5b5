"""The decode step and the prefill of the LLaMA family in JAX, sharded over a slice. Needs jax, an extra."""

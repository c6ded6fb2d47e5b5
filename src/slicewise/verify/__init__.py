"""Takes a plan to the compiler: compiles the sharded program for that slice and compares what comes back with costs."""

from slicewise.verify.run import verify

__all__ = ["verify"]

"""What it costs: formulas on floats or arrays. Each file has one subject, each function one quantity.

Parameters are named after other formulas or inputs and broadcast together, so that one point and a grid of a million
take the same path. Nothing here reads, writes, branches on a model family or keeps state.
"""

"""The type of a quantity."""

import numpy as np
from numpy.typing import NDArray

Real = float | NDArray[np.float64]
"""One point, or a grid: every formula takes and gives either."""

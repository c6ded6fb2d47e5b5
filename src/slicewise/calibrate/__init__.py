"""From measurements to an efficiency file: readers, the fit, and how well it holds on what it never saw."""

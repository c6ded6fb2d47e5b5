"""Chapter 8 of *How to Scale Your Model* as a conformance suite: printed answers are data, ours the planner's."""

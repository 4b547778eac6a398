"""The file of a screening experiment, and the plan that follows from it."""

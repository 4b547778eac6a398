"""Run and analyze screening experiments, which identify the factors that affect performance."""

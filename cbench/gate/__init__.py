"""`cbench gate`, which compares old with new in CI and fails only for a regression that a second session confirms."""

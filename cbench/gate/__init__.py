"""`cbench gate`, which compares old with new in CI and fails only on a regression that a second session confirms."""

"""`cbench gate`: old against new in CI, red only for a regression that a second session confirms."""

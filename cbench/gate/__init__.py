"""The command `cbench gate`: it compares old and new code in CI and, by default, fails only on a regression that a
second session confirms.
"""

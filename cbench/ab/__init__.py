"""The command `cbench ab`: it compares two or more arms in randomized blocks, and measures the noise floor with a copy
of the first arm.
"""

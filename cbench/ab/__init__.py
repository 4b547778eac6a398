"""`cbench ab`, which compares two or more arms in randomized blocks, with a copy of the first arm for the noise
floor.
"""

"""Plan, apply, verify and restore settings; the journal that makes this safe."""

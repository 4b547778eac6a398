"""The bundled profiles (TOML)."""

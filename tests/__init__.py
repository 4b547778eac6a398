"""The tests; their tree mirrors the product's."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]

"""The tests; their tree mirrors the product's."""

from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
ABSENT = "not here: "  # begins the reason of a test that is skipped for what is not installed; the summary lists these

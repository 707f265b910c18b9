"""Who sells models, and what the price table (genai-prices) leaves out, from ``resources/prices/vendors.json``."""

from __future__ import annotations

import json

from console.domain.process.assets import resource

_DATA = json.loads(resource("prices", "vendors.json").read_bytes())
SELLERS: dict[str, str] = {name: vendor for vendor, names in _DATA["sellers"].items() for name in names}
"""The sellers of models, by the names that conventions and instrumentations give providers (letters and digits only)."""
STEP_MISSING = frozenset((vendor, model) for vendor, model in _DATA["step_missing"])
"""Models with one price in the table although the vendor has two."""
# Sonnet 4 and Sonnet 4.5 cost 6 and 22.50 dollars a million instead of 3 and 15 once the whole input of a request is above 200,000 tokens
# (Anthropic, "Long context pricing", since 2025-08-12).

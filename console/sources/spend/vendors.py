"""Who sells models, and what the price table (genai-prices) leaves out, from ``resources/prices/vendors.json``."""

from __future__ import annotations

import json

from console.domain.assets import resource

_DATA = json.loads(resource("prices", "vendors.json").read_bytes())
SELLERS: dict[str, str] = {name: vendor for vendor, names in _DATA["sellers"].items() for name in names}
"""Who sells a model, by the names that conventions and instrumentations give providers (letters and digits of them alone)."""
STEP_MISSING = frozenset((vendor, model) for vendor, model in _DATA["step_missing"])
"""Models of which the table has one price alone, and their vendor's sheet two: Sonnet 4, as Sonnet 4.5, costs 6 and 22.50 dollars a
million in place of 3 and 15 once all input of a request is above 200,000 tokens (Anthropic, "Long context pricing", since 2025-08-12)."""

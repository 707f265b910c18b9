"""Who sells models, and what the price table (genai-prices) leaves out: data alone."""

from __future__ import annotations

SELLERS = {
    name: vendor
    for vendor, names in {
        "anthropic": "anthropic",
        "aws": "aws_bedrock aws bedrock amazon_bedrock",
        "azure": "azure_ai_openai azure_ai_inference az_ai_openai az_ai_inference azure azure_openai",
        "cohere": "cohere",
        "deepseek": "deepseek",
        "google": "gcp_gemini gcp_gen_ai gcp_vertex_ai gemini vertex_ai google google_gla google_vertex google_generative_ai",
        "groq": "groq",
        "mistral": "mistral_ai mistral mistralai",
        "openai": "openai",
        "openrouter": "openrouter",
        "perplexity": "perplexity",
        "x-ai": "x_ai xai",
    }.items()
    for name in names.split()
}
"""Who sells a model, by the names that conventions and instrumentations give providers (letters and digits of them alone)."""
STEP_MISSING = frozenset(
    (
        ("anthropic", "claude-sonnet-4-0"),
        ("aws", "global.anthropic.claude-sonnet-4-20250514-v1:0"),
        ("aws", "regional.anthropic.claude-sonnet-4-20250514-v1:0"),
        ("openrouter", "anthropic/claude-sonnet-4"),
    )
)
"""Models of which the table has one price alone, and their vendor's sheet two: Sonnet 4, as Sonnet 4.5, costs 6 and 22.50 dollars a
million in place of 3 and 15 once all input of a request is above 200,000 tokens (Anthropic, "Long context pricing", since 2025-08-12)."""

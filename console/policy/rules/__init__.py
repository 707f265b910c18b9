"""Rules as they are written and loaded, and what a judgement is made of."""

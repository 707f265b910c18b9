"""The Budgets page: what ends first, who spends it, the day as pictures, and limits with a reason."""

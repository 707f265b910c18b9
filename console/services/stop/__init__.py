"""The stop path of the supervisor: orders to the guard, and what becomes of them."""

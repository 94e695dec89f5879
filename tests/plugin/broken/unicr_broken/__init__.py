"""Wrong things."""

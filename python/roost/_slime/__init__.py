"""slime's placement groups: what they are (layout), where they are (placement), and what runs in them (train)."""

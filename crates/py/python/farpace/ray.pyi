def main() -> int:
    """What `farpace sweep --ray` starts."""

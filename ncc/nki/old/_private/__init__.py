"""Names that kernels of the time imported from a private package."""

"""Names that kernels of the time imported from the compiler's own package."""

"""Kernels as their authors write them: each is run by `tests/test_kernels.py`."""

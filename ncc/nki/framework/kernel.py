"""`nki.framework.kernel`: the kernel object that drivers take."""

from ncc.nki.compiler.builds import Kernel

__all__ = ["Kernel"]

"""`nki.compiler.ncc_driver`: from BIR to a NEFF."""

from ncc.nki.compiler.builds import CompileOptions, compile_bir_to_neff, compile_to_bir

__all__ = ["CompileOptions", "compile_bir_to_neff", "compile_to_bir"]

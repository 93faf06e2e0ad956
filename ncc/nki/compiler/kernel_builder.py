"""`nki.compiler.kernel_builder`: a function and arrays to a compiled kernel."""

from ncc.nki.compiler.builds import CompiledKernel, CompileOptions, Kernel, compile_kernel

__all__ = ["CompileOptions", "CompiledKernel", "Kernel", "compile_kernel"]

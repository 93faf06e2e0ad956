"""`nki.compiler.frontend`: the names of the front ends."""

from ncc.nki.compiler.builds import ParserFrontend, TracerFrontend

__all__ = ["ParserFrontend", "TracerFrontend"]

"""What a kernel may ask about the machine that it is compiled for."""

from __future__ import annotations

from ncc.nki.isa.calls import call
from ncc.nki.isa.constants import nc_version
from ncc.nki.targets import default_target
from ncc.nki.trace import current, is_tracing


@call
def get_nc_version() -> nc_version:
    """The generation of the core; outside a kernel that of the default target."""
    target = current().target if is_tracing() else default_target()
    return nc_version(target.level // 10)


@call
def get_nc_sub_version() -> int:
    """The revision of the silicon within its generation."""
    return 0

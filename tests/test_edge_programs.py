"""The corners of the accepted programs, from HLO to bytes: each is run before and after each pass.

Whole numbers must agree exactly. What these programs have in common is that each of them is the
smallest, emptiest or oddest of its kind.
"""

from __future__ import annotations

from itertools import product

import pytest

import ncc
from ncc.target import TARGETS
from tests.whole_programs import hlo

"""What ncc does not model: every report points here (`ncc explain --unchecked`)."""

from __future__ import annotations

UNCHECKED: tuple[tuple[str, str], ...] = (
    ("devices", "no device has loaded a NEFF of ncc's; nothing here claims to agree with silicon"),
    (
        "static DMA",
        "inputs and outputs travel by static records in the streams; the vendor's "
        "compiler builds descriptors for them outside the streams",
    ),
    ("time", "this release has no clock: nothing is said about cycles"),
    (
        "order of sums",
        "the machine sums a pass of the array in float64 and rounds once; hardware's "
        "order is not published",
    ),
    (
        "fp32 on the PE array",
        "two passes, high and low half of the stationary operand, at every level",
    ),
    (
        "infinity on the PE array",
        "fp32: times the other operand's low half, often 0, an infinity is NaN; so it is times "
        "an identity's zeros in a transpose that computes, as trn1's do; HLO has a number there",
    ),
    ("sign of a zero sum", "a sum that is zero may come out as 0.0 or as -0.0, at every level"),
    ("NaN in maximum", "the engines return the second operand when either is NaN; XLA returns NaN"),
    (
        "narrow overflow",
        "values beyond the largest of an 8-bit float saturate; XLA gives infinity or NaN",
    ),
    ("PE transposes", "leave fp32 cells on every generation; hardware can leave 16-bit data"),
    (
        "two cores",
        "a tile goes to the other core through HBM, not from SBUF to SBUF; both may write the same "
        "bytes to one place without meeting; on trn1 one core plays both, from meeting to meeting",
    ),
    ("trn3", "uses the records of trn2's generation with its own sizes and types"),
    (
        "dtype float8_e4m3fn on trn1 and trn2, float8e4 on trn3",
        "the container declares such an input as bfloat16, which holds each of its values",
    ),
    ("hardware bugs and errata", "only the column group that the references name is refused"),
    ("power, throttling, HBM refresh", "not modelled"),
)

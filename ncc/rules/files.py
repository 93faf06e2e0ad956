"""Rules 0: files and options."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = (
    Rule(
        "NCC001",
        "no such pass, level or name",
        "A pass, level, stage or file must exist under the name that is given.",
        "`ncc passes` lists the passes; the message names the nearest one.",
    ),
    Rule(
        "NCC002",
        "unreadable option",
        "An option's value must have the form that its help shows.",
        "Write the value as the message says.",
    ),
    Rule(
        "NCC003",
        "no such file",
        "A file that is named on the command line must exist.",
        "Check the path.",
    ),
    Rule(
        "NCC004",
        "not a program",
        "A program is HLO text, a printed stage (first line `# ncc LEVEL ...`) or a NEFF.",
        "Give a .hlo file, a printed stage or a .neff file.",
    ),
    Rule(
        "NCC005",
        "comes later",
        "A command or option that a later release brings is refused.",
        "Leave the option out.",
    ),
    Rule(
        "NCC006",
        "wrong inputs",
        "A run takes one array a parameter, each of the parameter's shape.",
        "Name the arrays in0, in1, ... in parameter order, with the shapes of the program.",
    ),
    Rule(
        "NCC007",
        "a required pass was skipped",
        "A pass that is marked required cannot be skipped.",
        "Replace it with --with-pass instead.",
    ),
    Rule(
        "NCC008",
        "a difference was found",
        "A check compares a program before and after every pass, and from the bytes.",
        "The message names the first pass that changes the result.",
    ),
    Rule(
        "NCC009",
        "text that is no stage",
        "A printed stage must read back: a known op, its fields by name, one node a line.",
        "Compare the line with what `--print-after` prints.",
        names=("BIR003", "BIR015"),
    ),
    Rule(
        "NCC010",
        "a pass of yours broke",
        "A pass that stands in for one of ncc's must return a module of its level.",
        "The message names the line of your file; NCC_DEBUG=1 prints all of the traceback.",
    ),
    Rule(
        "NCC011",
        "too little memory",
        "The arrays of a run must fit the memory of the computer that runs ncc.",
        "Use smaller shapes, or a computer with more memory.",
    ),
    Rule(
        "NCC012",
        "not a file of this lab",
        "A lab's file defines the pass of its name and imports only what a pass needs.",
        "Start from the file that `ncc lab start` wrote.",
    ),
)

"""`ncc passes` and `ncc explain`."""

from __future__ import annotations

import click

from ncc import files, passes
from ncc.commands.shared import show_json, show_table, written
from ncc.errors import UsageError, nearest
from ncc.passes.base import Pass, section
from ncc.stages import Stage, level, read_stage

JOBS = {
    "F0": "hlo2penguin: reads HLO, lowers it all the way to Penguin, and exits",
    "F1": "the golden evaluator: runs HLO as a reference; ncc's interpreters do, but no pass",
    "F2": "the front end: hlo-opt, a second tool on HLO, then Penguin down to BIR",
    "W0": "walrus: everything on BIR, then bundles and the container",
}


@click.command("passes")
@click.option("--by", type=click.Choice(["order", "job"]), default="order", help="how to sort")
@click.option("--json", "as_json", is_flag=True, help="print as JSON")
def passes_(by: str, as_json: bool) -> None:
    """List the passes in the order in which they run, or by the real tools' jobs."""
    rows = [row(name, passes.load(entry)) for name, entry in passes.called().items()]
    if by == "job":
        rows.sort(key=lambda r: [*JOBS, ""].index(str(r["job"])))
    if as_json:
        show_json(rows)
    elif by == "job":
        by_job(rows)
    else:
        show_table(rows, ("pass", "level", "required", "exact", "job", "stands for"))


def by_job(rows: list[dict[str, object]]) -> None:
    """The registry by the real compiler's jobs, with what is odd about their order."""
    click.echo(
        "By the real compiler's jobs, in wall-clock order, which is not the order of the levels:\n"
        "F0 lowers HLO to Penguin and exits before F2 starts, which works on HLO once more; that\n"
        "layouts are assigned there is inferred. ncc has one pipeline, so a layout is settled\n"
        "before the program is lowered.\n"
    )
    for job, what in (*JOBS.items(), ("", "no job of its own")):
        mine = [r for r in rows if r["job"] == job]
        if mine:
            click.echo(f"{job}  {what}".strip())
        for r in mine:
            click.echo(f"    {r['pass']:<20} {r['stands for'] or 'ours'} ({r['sure']})")


def row(name: str, one: Pass) -> dict[str, object]:
    """One pass as a row of the registry."""
    level = one.source if one.source == one.target else f"{one.source} to {one.target}"
    return {
        "pass": name,
        "level": level,
        "required": one.required,
        "exact": one.exact,
        "job": one.job,
        "stands for": one.real,
        "sure": one.sure,
        "purpose": one.purpose,
        "needs": list(one.needs),
        "gives": list(one.gives),
        "ends": list(one.ends),
        "after": dict(one.after),
    }


@click.command("explain")
@click.argument("name", required=False)
@click.option("--unchecked", is_flag=True, help="list what ncc does not model or check")
@click.option("--svg", metavar="DIR", help="write a pass's before and after pictures into a folder")
def explain(name: str | None, unchecked: bool, svg: str | None) -> None:
    """Explain a pass (also by the real compiler's name), or an error's code."""
    if unchecked:
        from ncc.unchecked import UNCHECKED

        for title, why in UNCHECKED:
            click.echo(f"{title}: {why}")
        return
    if not name:
        raise UsageError("NCC002", "give the name of a pass, a code, or --unchecked")
    found = pass_called(name)
    if found:
        click.echo(page(*found), nl=False)
        if svg:
            pictures(found[1], svg)
        return
    click.echo(rule_page(name), nl=False)


def pass_called(name: str) -> tuple[str, Pass] | None:
    """The pass with this name, or the first that stands for this real pass."""
    names = passes.called()
    plain = name.replace("_", "-")
    if plain in names:
        return plain, passes.load(names[plain])
    for called, entry in names.items():
        one = passes.load(entry)
        words = one.real.replace("(", " ").replace(")", " ").replace(",", " ").lower().split()
        if name.lower() in words:
            return called, one
    return None


def page(name: str, one: Pass) -> str:
    """A pass's page: purpose, before and after, why, facts, order, what it stands for."""
    facts = row(name, one)
    lines = [f"{name}: {one.purpose}", ""]
    for title in ("Before", "After"):
        lines += [f"{title}:", *("    " + x for x in section(one.doc, title).splitlines()), ""]
    why = one.doc[one.doc.find("Why:") :].strip()
    lines += [why, "", f"level: {facts['level']}"]
    for key in ("needs", "gives", "ends"):
        if getattr(one, key):
            lines.append(f"{key}: {', '.join(getattr(one, key))}")
    for other, reason in one.after.items():
        lines.append(f"after {other}: {reason}")
    kind = "required" if one.required else "optional"
    lines.append(f"{kind}; {'exact, bit for bit' if one.exact else 'may round differently'}")
    real = one.real or "nothing of the real compiler's"
    lines.append(f"stands for {real} ({one.sure}){', job ' + one.job if one.job else ''}")
    return "\n".join(lines) + "\n"


def pictures(one: Pass, folder: str) -> None:
    """The before and after pictures of a pass's page."""
    from ncc.view.render import picture

    before = example(one)
    after = Stage(one.target, before.target, one.name, (), one.apply(before.module, before.target))
    into = files.folder(folder)
    for stage, which, base in ((before, "before", None), (after, "after", before)):
        written(files.write(into / f"{one.name}-{which}.svg", picture(stage, base)))


def example(one: Pass) -> Stage:
    """The stage under Before in a pass's docstring."""
    from ncc.target import TARGETS

    text = section(one.doc, "Before")
    if text.startswith("# ncc "):
        return read_stage(text, one.name)
    module = level(one.source).get("parse")(text, one.name, 1)
    return Stage(one.source, TARGETS["trn2"], "input", one.needs, module)


def rule_page(name: str) -> str:
    """The page of a code: the rule, what to do, a failing and a fixed example."""
    from ncc.rules import named, rules

    rule = named(name)
    if rule is None:
        known = [*passes.called(), *rules(), *(n for r in rules().values() for n in r.names)]
        hint = nearest(name, known)
        raise UsageError("NCC001", f"nothing is called {name!r}: no pass and no code", hint=hint)
    lines = [f"{rule.code}: {rule.title}", "", rule.says, rule.fix]
    if rule.names:
        lines += ["", f"also called {', '.join(rule.names)}"]
    for title, text in (("refused", rule.wrong), ("right", rule.right)):
        if text:
            lines += ["", f"{title} by `ncc {rule.how}`:", *("    " + x for x in text.splitlines())]
    return "\n".join(lines) + "\n"

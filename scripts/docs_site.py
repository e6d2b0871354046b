"""Writes all pages of the site of `make docs` into a folder, with a configuration, for MkDocs and other builders alike.

    python scripts/docs_site.py FOLDER

The README is the first page. Files outside docs/ that a page links to are added, Markdown as pages and others as they
are. A page for each command and one for each section of the configuration are generated from the code. Formulas, which
pages have in GitHub's form, become MathML. FOLDER gets the pages in docs/, and the navigation of the repository's
mkdocs.yml in an mkdocs.yml of its own.
"""

from __future__ import annotations

import html
import posixpath
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from xml.etree.ElementTree import Element, tostring

import typer
import yaml
from latex2mathml.converter import convert_to_element

from nmt.cli.app import COMMANDS, app, build_command
from nmt.cli.grouped import GroupedCommand
from nmt.config.help import Section, sections
from nmt.experiment import Experiment

ROOT = Path(__file__).resolve().parent.parent
DOCS = "docs"
CONFIG = "mkdocs.yml"
HOME = "README.md"
OTHERS = ("CHANGELOG.md", "CONTRIBUTING.md")
"""Pages of the site that no page needs to link to."""

LINK = re.compile(r"(?<=\]\()([^)#:\s]+)(?=(?:#[^)\s]*)?\))")
"""Pattern of a relative link; the group is its path."""

CODE = re.compile(r"`[^`]*`")

OPTION = re.compile(r"(?<![`\[])`(--?[a-z][\w-]*(?: [\w.<>-]{1,12})?)`(?!`)")
"""Pattern of an option as code, perhaps with a short value."""

PLAIN_OPTION = re.compile(r"(?<![\w-])(--[a-z][\w-]*)")

FORMULA = re.compile(
    r"^```math\n(?P<block>.*?)^```$"
    r"|^```.*?^```$|^ {4}.*?$|(?P<ticks>`+).*?(?P=ticks)"  # code: no formula is looked for in it
    r"|(?<!\S)\$(?! )(?P<line>[^$\n]+)(?<! )\$(?!\w)(?P<after>[.,:;)]*)",
    flags=re.DOTALL | re.MULTILINE,
)
"""A formula as GitHub has it, on lines of its own or with the punctuation after it, or code."""

OPERATORS = {";": ";", "&#x0007E;": "&#x0223C;"}
"""What latex2mathml takes for variables: a semicolon and the tilde of a distribution. With the right characters."""

MINUS, SLASH, PRIME = "&#x02212;", "&#x0002F;", "&#x02032;"
CLOSING = ("&#x00029;", "]")
"""Brackets behind which a minus is no sign."""

BOUNDS = re.compile(r"(.*?)  \[([^\[\]]+)\]", flags=re.DOTALL)
"""Pattern of an option's help, followed by Typer's note of its default and bounds."""

GUIDES = {
    "init": "begin",
    "info": "begin",
    "doctor": "begin",
    "config": "begin",
    "import": "begin",
    "score": "translate",
    "aligner": "align",
    "links": "align",
    "filter": "prepare",
    "augment": "recipes",
    "languages": "prepare",
    "states": "report",
    "calibrate": "trust",
}
"""Pages about commands whose names differ from the command's."""


# -------------------------------------------------------------------------------------------- pages that are there


def in_site(path: str) -> str:
    """Returns the path in the site of a file of the repository."""
    if path == HOME:
        return "index.md"
    return path.removeprefix(f"{DOCS}/")


def linked(path: str) -> list[str]:
    """Finds the files of the repository that a page links to, by their paths in it."""
    text = (ROOT / path).read_text(encoding="utf-8")
    targets = (posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) for target in LINK.findall(text))
    return [target for target in targets if not target.startswith("..") and (ROOT / target).is_file()]


def outside(pages: Sequence[str]) -> list[str]:
    """Finds the files outside docs/ that pages link to, and those that these link to."""
    paths = dict.fromkeys((HOME, *OTHERS))
    waiting = [*paths, *pages]
    while waiting:
        new = [path for path in linked(waiting.pop()) if not path.startswith(f"{DOCS}/") and path not in paths]
        paths |= dict.fromkeys(new)
        waiting += [path for path in new if path.endswith(".md")]
    return list(paths)


def with_bars(markdown: str) -> str:
    """Returns a page without the escapes of bars in code in tables, which GitHub needs and the site does not."""
    return "\n".join(
        CODE.sub(lambda span: span[0].replace("\\|", "|"), line) if line.startswith("|") else line
        for line in markdown.split("\n")
    )


def with_links(markdown: str, path: str) -> str:
    """Returns a page of the repository with its links as the site needs them."""
    folder, here = posixpath.dirname(path), posixpath.dirname(in_site(path))

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[0]))
        return posixpath.relpath(in_site(target), here or ".") if (ROOT / target).is_file() else link[0]

    return LINK.sub(moved, markdown)


# ---------------------------------------------------------------------------------------------------- reference


def written() -> dict[str, str]:
    """Returns paths in the site and texts of the generated pages, each list before its pages."""
    folders = {"commands": command_pages(), "configuration": configuration_pages()}
    return {f"{folder}/{name}.md": text for folder, pages in folders.items() for name, text in pages.items()}


def command_pages() -> dict[str, str]:
    """Returns texts of the page that lists the commands, `index`, and of the page of each."""
    parent = typer.Context(typer.main.get_command(app), info_name="nmt")
    pages: dict[str, str] = {"index": ""}
    listed = ["# Commands", "", "| command | |", "|---|---|"]
    for name in COMMANDS:
        command = build_command(name)
        assert isinstance(command, GroupedCommand)
        context = typer.Context(command, info_name=name, parent=parent)
        pages[name] = _command(command, context)
        summary = " ".join((command.help or "").partition("\n\n")[0].split())
        listed.append(f"| [nmt {name}]({name}.md) | {cell(summary)} |")
    listed += ["", "`nmt --version` prints the version, `nmt COMMAND --help` what is on these pages."]
    pages["index"] = "\n".join(listed)
    return pages


def _command(command: GroupedCommand, context: typer.Context) -> str:
    name = context.info_name or ""
    usage = command.get_usage(context).removeprefix("Usage: ")
    lines = [f"# nmt {name}", "", f"    {usage}", ""]
    lines += [escape(part) + "\n" for part in (command.help or "").split("\n\n")]
    lines += [f"[{GUIDES.get(name, name)}](../{GUIDES.get(name, name)}.md) tells more."]
    for title, records in command.sections(context).items():
        lines += ["", f"## {title}", "", "| | meaning | default, bounds |", "|---|---|---|"]
        for written, said in records:
            parts = BOUNDS.fullmatch(said)
            meaning, more = (parts[1], parts[2]) if parts else (said, "")
            lines.append(f"| {code(written)} | {cell(meaning)} | {cell(more.removeprefix('default: '))} |")
    return "\n".join(lines)


def configuration_pages() -> dict[str, str]:
    """Returns texts of the page of the top level of a configuration, `index`, and of the page of each section."""
    pages: dict[str, list[str]] = {}
    for section in sections(Experiment):
        top = section.place.partition(".")[0] or "index"
        pages.setdefault(top, ["# Configuration" if top == "index" else f"# {top}"]).extend(_section(section))
    pages["index"] += ["", "| section |", "|---|", *(f"| [{top}]({top}.md) |" for top in pages if top != "index")]
    pages["index"] += ["", "`nmt config --explain KEY` tells the same on the terminal; [begin](../begin.md) has more."]
    return {top: "\n".join(lines) for top, lines in pages.items()}


def _section(section: Section) -> list[str]:
    title = ": ".join(filter(None, (section.place, ", ".join(section.kinds))))
    lines = ["", f"## {escape(title)}", ""] if "." in section.place or section.kinds else [""]
    lines += [escape(" ".join(part.split())) + "\n" for part in section.summary.split("\n\n")]
    if section.rows:
        lines += ["| key | type and bounds | default | meaning |", "|---|---|---|---|"]
    for row in section.rows:
        key = f"{section.place}.{row.name}" if section.place else row.name
        cells = (code(key), cell(row.type), code(row.default), cell(row.meaning))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def escape(text: str) -> str:
    """Converts plain text to Markdown; an option stays on one line."""
    return PLAIN_OPTION.sub(r'<span class="option">\1</span>', re.sub(r"([\\`*_{}\[\]<>#])", r"\\\1", text))


def cell(text: str) -> str:
    """Converts plain text to a cell of a table in Markdown."""
    return escape(" ".join(text.split())).replace("|", "\\|")


def code(text: str) -> str:
    """Formats code in a table."""
    return f"`{text}`"


def whole_options(markdown: str) -> str:
    """Keeps options such as ``--ray`` on one line, which browsers would break behind the dashes: as code of a class
    that the style sheet knows."""
    lines, is_code = [], False
    for line in markdown.split("\n"):
        is_code ^= line.startswith("```")
        if not is_code and not line.startswith("    "):
            line = OPTION.sub(lambda span: f'<code class="option">{html.escape(span[1])}</code>', line)
        lines.append(line)
    return "\n".join(lines)


def with_formulas(markdown: str) -> str:
    """A page with its formulas in MathML. One in a line is kept together with the punctuation after it."""

    def converted(found: re.Match[str]) -> str:
        if found["block"]:
            return f'<div class="formula">{mathml(found["block"], "block")}</div>'
        if found["line"]:
            return f'<span class="formula">{mathml(found["line"], "inline")}{found["after"]}</span>'
        return found[0]

    return FORMULA.sub(converted, markdown)


def mathml(latex: str, display: str) -> str:
    """A formula in MathML, spaced as TeX does it where latex2mathml leaves that to the browser."""
    latex = re.sub(r"(?<!left)\\(?=l[vV]ert)", r"\\left\\", latex)  # browsers take other bars for operators
    latex = re.sub(r"(?<!right)\\(?=r[vV]ert)", r"\\right\\", latex)
    latex = latex.replace(r"\mathrm{", r"\text{")  # one element for a name, not one for each letter
    root = convert_to_element(latex, display=display)
    tight = [each for each in root.iter("mo") if each.text == SLASH]
    for element in root.iter():
        if element.tag == "mo" and (element.text or "").isalpha():
            element.tag = "mi"  # min
        elif element.text in OPERATORS:
            element.tag, element.text = "mo", OPERATORS[element.text]
        if element.tag == "msup" and (element[1].text or "").startswith(PRIME):
            element.tag = "mrow"  # fonts have it raised
        if element.tag in ("msub", "msup", "msubsup", "munder", "munderover"):
            tight += [operator for script in element[1:] for operator in script.iter("mo")]
        elif element.tag in ("mrow", "mtd"):
            for before, after in pairwise(list(element)):
                if before.tag == "mo" and before.text not in CLOSING and after.text == MINUS:
                    after.set("form", "prefix")  # a sign
                elif "mo" not in (before.tag, after.tag) and (is_function(before) or is_function(after)):
                    element.insert(list(element).index(after), Element("mspace", width="0.17em"))
    for operator in tight:
        operator.attrib.update(lspace="0", rspace="0")
    return tostring(root, encoding="unicode").replace("&amp;", "&")  # entities, with which latex2mathml writes symbols


def is_function(element: Element) -> bool:
    """Tells whether an element of MathML is the name of a function, such as log, perhaps with a subscript."""
    name = (element[0] if element.tag == "msub" else element).text or ""
    return name.isalpha() and len(name) > 1 and element.tag in ("mi", "msub")


def repository() -> str | None:
    """Finds the address, for browsers, of the repository that this clone comes from; None if there is none."""
    done = subprocess.run(["git", "remote", "get-url", "origin"], cwd=ROOT, capture_output=True, text=True)
    address = re.sub(r"^git@([^:]+):", r"https://\1/", done.stdout.strip()).removesuffix(".git")
    return address if address.startswith(("https://", "http://")) and "@" not in address else None


# ------------------------------------------------------------------------------------------------------ the folder


def write(folder: Path) -> None:
    """Write the pages, the files that they show and link to, and the configuration. Deletes the previous content of
    docs/."""
    shutil.rmtree(folder / DOCS, ignore_errors=True)
    own = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / DOCS).rglob("*")) if path.is_file()]
    for path in (*own, *outside([page for page in own if page.endswith(".md")])):
        target = folder / DOCS / in_site(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.endswith(".md"):
            text = (ROOT / path).read_text(encoding="utf-8")
            target.write_text(with_formulas(whole_options(with_bars(with_links(text, path)))), encoding="utf-8")
        else:
            shutil.copyfile(ROOT / path, target)
    for uri, text in written().items():
        (folder / DOCS / uri).parent.mkdir(parents=True, exist_ok=True)
        (folder / DOCS / uri).write_text(whole_options(text), encoding="utf-8")
    (folder / CONFIG).write_text(configuration((ROOT / CONFIG).read_text(encoding="utf-8")), encoding="utf-8")


def configuration(text: str) -> str:
    """Returns the configuration of the site: folders in the navigation, such as `commands/`, are their generated pages,
    the list first, and the footer links to the repository, because Material's own link would ask GitHub for stars."""
    settings, nav = text.split("\nnav:\n")
    pages = list(written())

    def expanded(entry: object) -> object:
        if isinstance(entry, list):
            return [expanded(child) for child in entry]
        if isinstance(entry, dict):
            return {title: expanded(below) for title, below in entry.items()}
        if isinstance(entry, str) and entry.endswith("/"):
            return [uri for uri in pages if uri.startswith(entry)]
        return entry

    added: dict[str, object] = {"nav": expanded(yaml.safe_load(nav))}
    if address := repository():
        link = {"icon": "fontawesome/brands/git-alt", "link": address, "name": "Repository"}
        added["extra"] = {"social": [link]}
    return f"{settings}\n{yaml.safe_dump(added, sort_keys=False)}"


if __name__ == "__main__":
    write(Path(sys.argv[1]))

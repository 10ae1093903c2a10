"""Lays out what Sphinx reads: the pages of docs, and references made from the headers, the package and the
tool.

    python stage.py KILN STAGE      KILN: the command line tool; `import kiln` must work
"""
import contextlib
import pathlib
import re
import shutil
import sys

import c_reference
import matplotlib
import python_reference
import tool_reference

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)]*)?\)")
# Files outside docs that are pages of the site.
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md",
         "SECURITY.md": "security.md", "bench/studies/README.md": "studies.md"}


def stage_page(source: pathlib.Path, to: pathlib.Path, stage: pathlib.Path) -> None:
    """Copies a page; what it links to elsewhere in the repository comes along, as a file to read or as its
    reference."""

    def link(found: re.Match[str]) -> str:
        target = (source.parent / found["target"]).resolve()
        if not target.exists():
            return found[0]  # a generated page, or a dead link, of which Sphinx tells
        path = target.relative_to(ROOT)
        if target.is_dir():
            sys.exit(f"{source}: links to the folder {path}; link to a file of it")
        if str(path) in PAGES:
            return f"]({PAGES[str(path)]}{found['anchor'] or ''})"
        if path.parts[0] == "include":
            return f"](c-{'reference' if path.name == 'kiln.h' else path.stem}.md)"
        if path.parts[0] == "docs":
            return f"]({path.relative_to('docs')}{found['anchor'] or ''})"
        copy = stage / "files" / path
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, copy)
        return f"](files/{path})"

    fences = re.split(r"(^```.*?^```$)", source.read_text(), flags=re.M | re.S)
    to.write_text("".join(part if part.startswith("```") else LINK.sub(link, part) for part in fences))


SAVED = re.compile(r"^(```python\n(?:(?!```).*\n)*.*savefig\(\"(.*)\"\)\n(?:(?!```).*\n)*```\n)", re.M)


def draw(page: pathlib.Path, stage: pathlib.Path) -> None:
    """Runs the blocks of a page whose blocks save pictures, and puts each picture below its block."""
    text, names = page.read_text(), {}
    if not SAVED.search(text):
        return
    (stage / "data").symlink_to(ROOT / "data")
    with contextlib.chdir(stage):
        for block in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S):
            exec(compile(block, page.name, "exec"), names)
    (stage / "data").unlink()
    shown, pictures = SAVED.subn(r"\1\n![What this block draws](\2)\n", text)
    if pictures != text.count("savefig("):
        sys.exit(f"{page.name}: its blocks save {text.count('savefig(')} pictures, and {pictures} are shown")
    page.write_text(shown)


def main() -> None:
    tool, stage = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    for source in (ROOT / "docs").rglob("*"):
        path = source.relative_to(ROOT / "docs")
        if not source.is_file() or path.parts[0] == "site" or path.suffix == ".md":
            continue
        (stage / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, stage / path)
    for source in (ROOT / "docs").glob("*.md"):
        stage_page(source, stage / source.name, stage)
    matplotlib.use("svg")
    for page in sorted(stage.glob("*.md")):
        draw(page, stage)
    for name, page in PAGES.items():
        stage_page(ROOT / name, stage / page, stage)
    here = pathlib.Path(__file__).parent
    shutil.copyfile(here / "index.md", stage / "index.md")
    shutil.copyfile(here / "conf.py", stage / "conf.py")
    shutil.copytree(here / "_static", stage / "_static")
    c_reference.write(ROOT / "include", stage)
    python_reference.write(stage)
    tool_reference.write(tool, stage)


if __name__ == "__main__":
    main()

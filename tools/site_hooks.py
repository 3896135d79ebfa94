"""What mkdocs does not do for the site by itself (mkdocs.yml names this file).

The pages link to files of the repository outside docs/, so that they also work where the repository is read. On the site,
the documents at the top of the repository are pages of the folder project/. Examples and headers are pages of source/, each
with the text of one file.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# Documents outside docs/, to their places on the site.
PROJECT = {name: f"project/{name}" for name in ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
PROJECT["tests/cases/README.md"] = "project/TRANSCRIPTS.md"
SOURCES = sorted(
    str(path.relative_to(ROOT)) for folder in ("examples", "include") for path in (ROOT / folder).rglob("*.*") if path.name != "meson.build"
) + ["LICENSE"]
LINK = re.compile(r"(\]\()([^)#:\s]+)(#[^)\s]*)?(\))")
# mkdocs wants four blanks before an item of an inner list, where others take two.
INNER_ITEM = re.compile(r"^ {2,3}(?=- )", re.M)
FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


def place_on_site(path: str) -> str | None:
    """Where a file of the repository is on the site, or None if it is not there."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    if path in PROJECT:
        return PROJECT[path]
    if path in SOURCES:
        return f"source/{path}.md"
    return {"README.md": "index.md", "README.zh.md": "tutorial.zh.md"}.get(path)


def place_in_repository(uri: str) -> str:
    return next((path for path, place in PROJECT.items() if place == uri), f"docs/{uri}")


def on_files(files: Files, config: Any) -> Files:
    for name, place in PROJECT.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / name)))
    for name in SOURCES:
        language = {".h": "c", ".py": "python"}.get(Path(name).suffix, Path(name).suffix[1:] or "text")
        text = f"# {name}\n\n~~~~{language}\n{(ROOT / name).read_text()}~~~~\n"
        files.append(File.generated(config, f"source/{name}.md", content=text))
    return files


def adapt(markdown: str, uri: str) -> str:
    """The text of a page with links as seen from its place on the site, and lists as mkdocs reads them."""
    folder = posixpath.dirname(place_in_repository(uri))

    def rewrite(found: re.Match[str]) -> str:
        target = place_on_site(posixpath.normpath(posixpath.join(folder, found[2])))
        if target is None:
            return found[0]  # mkdocs reports it
        return f"{found[1]}{posixpath.relpath(target, posixpath.dirname(uri) or '.')}{found[3] or ''}{found[4]}"

    def change(text: str) -> str:
        return INNER_ITEM.sub("    ", LINK.sub(rewrite, text))

    pieces, end = [], 0
    for fence in FENCE.finditer(markdown):
        pieces += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*pieces, change(markdown[end:])])


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    uri = page.file.src_uri
    return markdown if uri.startswith("source/") else adapt(markdown, uri)


def on_post_page(output: str, page: Any, config: Any) -> str:
    language = page.meta.get("lang")
    return output.replace('<html lang="en"', f'<html lang="{language}"', 1) if language else output

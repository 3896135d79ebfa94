"""The site that `make docs` builds: no warning, no dead link, nothing from elsewhere."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

pytestmark = pytest.mark.plain

ROOT = Path(__file__).parents[2]


class Page(HTMLParser):
    """What a page of the site refers to, and what can be referred to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.language = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "html":
            self.language = given.get("lang", "")
        elif tag == "a" and "href" in given:
            self.links.append(given["href"])
        elif tag == "link" and given.get("rel") not in ("canonical", "prev", "next", "alternate"):
            self.loaded.append(given.get("href", ""))
        self.loaded += [given[name] for name in ("src", "srcset", "data", "poster") if given.get(name) and tag != "a"]


class Site:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # 404.html is for servers: its links begin at their root.
        self.pages = {path: Page(path) for path in sorted(folder.rglob("*.html")) if path.name != "404.html"}

    def links(self) -> Iterator[tuple[Path, str]]:
        return ((path, link) for path, page in self.pages.items() for link in page.links)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("site")
    program = Path(sys.executable).with_name("mkdocs")
    assert program.exists(), "mkdocs is missing: run tools/setup docs"
    command = [program, "build", "--strict", "--site-dir", folder]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return Site(folder)


def test_every_page_is_built(site: Site) -> None:
    pages = {str(path.relative_to(ROOT / "docs").with_suffix(".html")) for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= {str(path.relative_to(site.folder)) for path in site.pages}
    assert (site.folder / "project/ARCHITECTURE.html") in site.pages


def test_every_link_leads_to_a_page_and_a_place_in_it(site: Site) -> None:
    dead = []
    for path, link in site.links():
        parts = urlsplit(link)
        if parts.scheme:
            if not re.fullmatch(r"https://[a-z0-9.-]+\.[a-z]+(/\S*)?", link):
                dead.append((path.name, link))
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        target = target / "index.html" if target.is_dir() else target
        page = site.pages.get(target)
        if page is None or (parts.fragment and unquote(parts.fragment) not in page.anchors):
            dead.append((path.name, link))
    assert dead == []


def test_nothing_is_loaded_from_elsewhere(site: Site) -> None:
    foreign = []
    for path, page in site.pages.items():
        for reference in page.loaded:
            parts = urlsplit(reference)
            is_here = not parts.scheme and not parts.netloc and (path.parent / unquote(parts.path)).resolve().is_file()
            if parts.scheme != "data" and not is_here:
                foreign.append((path.name, reference))
    assert foreign == []
    for sheet in site.folder.rglob("*.css"):
        assert re.findall(r"""(?:url\(|@import )["']?(?!data:)(?:https?:)?//[^)"']*""", sheet.read_text()) == [], (
            sheet.name
        )
    # What the theme's own script would fetch from elsewhere, it fetches only for these.
    for path in site.pages:
        assert 'class="mermaid"' not in path.read_text()
        assert 'data-md-component="source"' not in path.read_text()


def test_the_search_has_every_page(site: Site) -> None:
    index = json.loads((site.folder / "search/search_index.json").read_text())
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"tutorial.html", "tutorial.zh.html", "reference/cli.html", "how-to/robots.html", "faq.html"} <= found
    # From disk, the same index comes as a script.
    assert (site.folder / "search/search_index.js").read_text().startswith("var __index = {")


def test_the_chinese_tutorial_says_that_it_is_chinese(site: Site) -> None:
    assert site.pages[site.folder / "tutorial.zh.html"].language == "zh"
    assert site.pages[site.folder / "tutorial.html"].language == "en"

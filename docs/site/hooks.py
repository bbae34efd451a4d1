"""Hooks of the site for MkDocs: pages stay as GitHub shows them, and are adapted here.

- A block of code that is a file has its name as a title.
- CONTRIBUTING.md and CHANGELOG.md are pages, and so is each file of the repository that a page links to.
- In the end, all links of the built site are followed, and nothing may be loaded from elsewhere.
"""

from __future__ import annotations

import logging
import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md", "README.md": "index.md"}
LANGUAGES = {".dl": "text", ".py": "python", ".toml": "toml", ".mlir": "text", ".rs": "rust", ".sh": "bash"}
_FILE_BLOCK = re.compile(r"^```(\w+) (\S+)$", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)]*)?\)")
_CODE = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_MATHJAX = re.compile(r"<script data-mkdocs-jupyter-mathjax=.*?</script>", re.DOTALL)
_MERMAID = re.compile(r'<script type="module">(?:(?!</script>).)*?jp-Mermaid.*?</script>', re.DOTALL)
_ELSEWHERE = re.compile(r"https?://[\w.]*(?:cdn|unpkg|jsdelivr|googleapis)[\w./-]*")
_log = logging.getLogger("mkdocs.hooks.shardlog")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that stand outside of docs/."""
    for name, page in PAGES.items():
        if page != "index.md":
            files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    pages = [ROOT / name for name in PAGES] + [Path(f.abs_src_path) for f in files if f.abs_src_path]
    for path in sorted({target for page in pages if page.suffix == ".md" for target in _outside(page)}):
        files.append(File.generated(config, _source(path), content=_listing(path)))
    return files


def _outside(page: Path) -> set[Path]:
    """The files and folders of the repository, outside of docs/, that a page links to."""
    links = {_LINK.sub(r"\1", match[0]) for match in _LINK.finditer(page.read_text(encoding="utf-8"))}
    targets = {(page.parent / link.removeprefix("](").removesuffix(")")).resolve() for link in links}
    docs = ROOT / "docs"
    return {
        path.relative_to(ROOT)
        for path in targets
        if path.exists() and path.is_relative_to(ROOT) and not path.is_relative_to(docs) and path != ROOT
    } - {Path(name) for name in PAGES}


def _source(path: Path) -> str:
    return f"source/{path.as_posix()}.md"


def _listing(path: Path) -> str:
    """A page that shows a file, or what is in a folder."""
    head = f"---\nsearch:\n  exclude: true\n---\n# {path.as_posix()}\n\n"
    if (ROOT / path).is_dir():
        return head + "\n".join(f"- `{each.name}`" for each in sorted((ROOT / path).iterdir()))
    text = (ROOT / path).read_text(encoding="utf-8")
    return f"{head}````{LANGUAGES.get(path.suffix, 'text')}\n{text}\n````\n"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Adapts a page: titles of blocks, and links to what stands outside of docs/."""
    if page.file.src_uri.startswith("source/"):
        return markdown
    text = _FILE_BLOCK.sub(r'```\1 title="\2"', markdown)
    outer = page.file.src_uri in PAGES.values() and page.file.src_uri != "index.md"
    folder = ROOT if outer else (ROOT / "docs" / page.file.src_uri).parent

    def link(match: re.Match[str]) -> str:
        path = (folder / match[1]).resolve()
        if not path.exists() or not path.is_relative_to(ROOT):
            return match[0]
        name = path.relative_to(ROOT).as_posix()
        target = PAGES.get(name) or (
            name.removeprefix("docs/") if name.startswith("docs/") else _source(Path(name))
        )
        start = posixpath.dirname(page.file.src_uri) or "."
        return f"]({posixpath.relpath(target, start)}{match[2] or ''})"

    parts = _CODE.split(text)
    return "".join(part if n % 2 else _LINK.sub(link, part) for n, part in enumerate(parts))


def on_post_page(output: str, **_: Any) -> str:
    """Leaves out what would load MathJax and Mermaid from elsewhere: no page has formulas or diagrams."""
    return _MERMAID.sub("", _MATHJAX.sub("", output))


class _Links(HTMLParser):
    """The links of a page, the names in it, and what a browser would load for it."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.names: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.names |= {attributes[name] for name in ("id", "name") if name in attributes}
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag in ("script", "img", "iframe", "video", "source") and "src" in attributes:
            self.loaded.append(attributes["src"])
        if tag == "link" and attributes.get("rel") in ("stylesheet", "icon", "preload", "modulepreload"):
            self.loaded.append(attributes["href"])


def on_post_build(config: Any) -> None:
    """Follows all links of the built site, and warns of what is loaded from elsewhere."""
    site = Path(config.site_dir)
    pages: dict[Path, _Links] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = _Links()
        text = path.read_text(encoding="utf-8")
        pages[path].feed(text)
        pages[path].loaded += _ELSEWHERE.findall(text)
    for path, page in pages.items():
        if path.name == "404.html":
            continue
        for url in page.loaded:
            if urlsplit(url).scheme in ("http", "https") or url.startswith("//"):
                _log.warning("%s loads %s", path.relative_to(site), url)
        for url in page.links:
            target, name = urldefrag(url)
            if urlsplit(target).scheme or target.startswith("//"):
                continue
            file = (path.parent / unquote(urlsplit(target).path)).resolve() if target else path
            file = file / "index.html" if file.is_dir() else file
            if not file.exists():
                _log.warning("%s links to %s, which does not exist", path.relative_to(site), url)
            elif name and file in pages and unquote(name) not in pages[file].names:
                _log.warning("%s links to %s, which has no such heading", path.relative_to(site), url)

"""The built site: links that lead somewhere, a search that finds, pages for everybody.

``SITE`` names the folder that ``sphinx-build`` wrote. Links to other sites are not
followed: nothing here asks for the network.
"""

import os
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest


SITE = Path(os.environ.get("SITE", "")).resolve()
pytestmark = pytest.mark.skipif(
    "SITE" not in os.environ, reason="SITE names no built site"
)
SEEN = {
    "front": "index.html",
    "which": "which.html",
    "how_to": "guide/lime.html",
    "gallery": "gallery/index.html",
    "reference": "reference/api/propopt.explain.html",
    "glossary": "background/glossary.html",
}
"""Pages that are looked at; their pictures are kept as ``site_<name>_<look>.png``."""
LOOKS = {
    "light": (1360, "light"),
    "dark": (1360, "dark"),
    "narrow": (390, "light"),
    "narrow_dark": (390, "dark"),
}

CUT_OFF = """() => {
  const beyond = (e) => e.getBoundingClientRect().right > innerWidth + 1;
  const scrolls = (e) => getComputedStyle(e).overflowX !== "visible";
  const held = (e) => e.tagName !== "ARTICLE" && (scrolls(e) || held(e.parentElement));
  return [...document.querySelectorAll("article *")]
    .filter((e) => beyond(e) && !held(e)).map((e) => e.textContent.slice(0, 60));
}"""
"""What is beyond the edge of the screen, and cannot be scrolled to."""


class Anchors(HTMLParser):
    """What a page links to and loads, and the names of its places."""

    def __init__(self, text):
        super().__init__()
        self.links, self.names = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.names |= {known[key] for key in ("id", "name") if known.get(key)}
        for key in ("href", "src"):
            if known.get(key):
                self.links.add((tag, known[key]))


def test_links_within_the_site_lead_somewhere_and_nothing_else_is_loaded():
    # pages of source link to places of the reference by the names of modules, if not
    # always: they lead to the page
    pages = {
        page: Anchors(page.read_text("utf-8"))
        for page in sorted(SITE.rglob("*.html"))
        if page.relative_to(SITE).parts[0] not in ("_static", "_modules")
    }
    assert len(pages) > 100
    wrong, outside = set(), set()
    for page, found in pages.items():
        for tag, link in found.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if tag != "a" and parts.scheme != "data":
                    outside.add((page.name, tag, link))
                continue
            to = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            place = unquote(parts.fragment)
            if not to.is_file() or (
                place and to in pages and place not in pages[to].names
            ):
                wrong.add((str(page.relative_to(SITE)), link))
    assert sorted(wrong) == []
    assert sorted(outside) == []


@pytest.fixture(scope="module")
def address():
    """Of the site, as a server of files has it."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture
def opened(browser, address):
    """A page as a browser shows it; it asked only for files of the site."""
    pages, heard = [], []

    def show(name, look="light"):
        width, scheme = LOOKS[look]
        size = {"width": width, "height": 900}
        page = browser.new_page(viewport=size, color_scheme=scheme)
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("requestfailed", lambda asked: heard.append(asked.url))
        page.on("request", lambda asked: is_ours(asked.url) or heard.append(asked.url))
        page.on("response", lambda had: had.ok or heard.append((had.status, had.url)))
        page.goto(address + name)
        pages.append(page)
        return page

    def is_ours(url):
        return url.startswith((address, "data:", "blob:"))

    yield show
    for page in pages:
        page.close()
    assert heard == []


@pytest.mark.parametrize("name", SEEN)
@pytest.mark.parametrize("look", LOOKS)
def test_axe_core_finds_nothing_and_nothing_is_wider_than_the_screen(
    name, look, opened, seen_by_axe
):
    page = opened(SEEN[name], look)
    assert page.evaluate("document.documentElement.dataset.theme") == LOOKS[look][1]
    assert page.evaluate("document.documentElement.scrollWidth") <= LOOKS[look][0]
    assert page.evaluate(CUT_OFF) == []
    assert seen_by_axe(page, f"site_{name}_{look}") == []


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("explain", "reference/api/propopt.explain.html"),
        ("gap", "background/glossary.html"),
        ("LIME limit", "guide/lime.html"),
    ],
)
def test_the_search_finds_what_is_looked_for(words, page, opened, address):
    shown = opened(f"search.html?q={words}")
    shown.wait_for_selector("#search-results .search li", timeout=20_000)
    shown.wait_for_timeout(1500)  # summaries come one after another
    found = shown.eval_on_selector_all(
        "#search-results li a", "links => links.map(link => link.href.split(/[?#]/)[0])"
    )
    assert address + page in found[:12]

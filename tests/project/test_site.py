"""The documentation in a real browser: every page loads, links lead somewhere, search finds.

``sphinx-build -W docs docs/_build/html && SMALTO_SITE=docs/_build/html pytest -n 0 <this file>``
"""

import functools
import http.server
import os
import threading
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest
from browser import browser, chromium

pytestmark = [
    pytest.mark.skipif("SMALTO_SITE" not in os.environ, reason="SMALTO_SITE names no built site"),
    pytest.mark.skipif(chromium() is None, reason="there is no Chromium"),
    pytest.mark.skipif(os.name != "posix", reason="Chromium is driven over pipes"),
]


@pytest.fixture(scope="module")
def site():
    """The folder of the built pages."""
    return Path(os.environ["SMALTO_SITE"])


@pytest.fixture(scope="module")
def address(site):
    """The address of a server of the site."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args):
            pass

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as tab:
        yield tab


def pages(site):
    found = sorted(site.rglob("*.html"))
    assert len(found) > 100
    return [page.relative_to(site).as_posix() for page in found if "_static" not in page.parts]


ON_A_SCREEN = """({
    ids: [...document.querySelectorAll("[id]")].map(node => node.id),
    links: [...document.links].map(link => link.href),
    nameless: [...document.images].filter(i => !i.alt.trim()).map(i => i.src),
    broken: [...document.images].filter(i => !i.naturalWidth && i.loading != "lazy")
        .map(i => i.src),
})"""
ON_A_PHONE = """({
    width: Math.max(document.documentElement.scrollWidth,
        ...[...document.querySelectorAll("main, .bd-content, .bd-article-container, article")]
            .map(node => node.scrollWidth)),
    letters: Math.min(99, ...[...document.querySelectorAll("article p, article li")]
        .map(node => parseFloat(getComputedStyle(node).fontSize))),
})"""


@pytest.fixture(scope="module")
def facts(site, address, tab):
    """What every page says about itself, and of what it complains."""
    facts = {}
    for name in pages(site):
        tab.resize(1300, 1000)
        tab.open(address + name)
        facts[name] = tab.run(ON_A_SCREEN)
        tab.resize(390, 844)
        facts[name] |= tab.run(ON_A_PHONE)
        facts[name] |= {"complaints": tab.complaints(), "requests": tab.requests()}
    return facts


def wrong(facts, key):
    return {name: fact[key] for name, fact in facts.items() if fact[key]}


def test_no_page_complains(facts):
    assert not wrong(facts, "complaints")


def test_no_request_to_another_host(facts, address):
    asked = {request for fact in facts.values() for request in fact["requests"]}
    assert len(asked) > len(facts)
    assert not [one for one in asked if not one.startswith((address, "data:", "blob:"))]


def test_pictures_are_there_and_have_alternative_texts(facts):
    assert not wrong(facts, "broken")
    assert not wrong(facts, "nameless")


def test_no_dead_internal_link(facts, site, address):
    dead = []
    for name, fact in facts.items():
        for link in fact["links"]:
            target, anchor = urldefrag(link)
            if not target.startswith(address):
                continue
            path = unquote(target.removeprefix(address).split("?")[0]) or "index.html"
            there = (site / path).is_file()
            if not there or (
                anchor and path in facts and unquote(anchor) not in facts[path]["ids"]
            ):
                dead.append((name, link))
    assert not dead


def test_the_search_finds_an_object(address, tab):
    tab.resize(1300, 1000)
    tab.open(address + "search.html?q=ErrorBound")
    found = tab.wait_for("[...document.querySelectorAll('#search-results li a')].map(a => a.href)")
    assert any("smalto.coders.ErrorBound" in link for link in found)


def test_readable_on_a_phone(facts):
    assert not {name: fact["width"] for name, fact in facts.items() if fact["width"] > 390}
    assert not {name: fact["letters"] for name, fact in facts.items() if fact["letters"] < 12}

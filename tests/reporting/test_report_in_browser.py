"""Reports in a real browser: nothing is missing or foreign, tables sort, pages of runs reload."""

import json
import os
import threading
import time

import numpy as np
import pytest
from browser import browser, chromium
from learning_problems import planted

from smalto import Model, learn
from smalto.coders import Lasso
from smalto.constraints import L2Ball
from smalto.learners import Online
from smalto.learning import Log
from smalto.reporting import Report, live, write_report

pytestmark = [
    pytest.mark.skipif(chromium() is None, reason="there is no Chromium"),
    pytest.mark.skipif(os.name != "posix", reason="Chromium is driven over pipes"),
]
HOSTILE = [
    "<script>window.hacked = 1</script>",
    "<img src=x onerror=window.hacked=1>",
    "\"' onmouseover=window.hacked=1 '\"",
    "</script></style></title><b>",
    "x" * 10_000,
]


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as tab:
        yield tab


@pytest.fixture(scope="module")
def data():
    return planted(n=800)[0]


@pytest.fixture(scope="module")
def pages(data, tmp_path_factory):
    """A page for each way of showing atoms."""
    folder = tmp_path_factory.mktemp("pages")
    result = learn(
        data, 30, Lasso(0.1), learner=Online(50), max_epochs=3, validation=data[:50], random_state=0,
        callbacks=[Log(folder / "run.jsonl")],
    )  # fmt: skip
    names = [*HOSTILE, *(f"gene {i}" for i in range(7))]
    return {
        "pictures": result.report(folder / "pictures.html", data, patch_shape=(3, 4)),
        "lines": result.report(folder / "lines.html", data, n_channels=2),
        "features": result.report(folder / "features.html", data, names=names, title=HOSTILE[0]),
        "log": write_report(folder / "run.jsonl", folder / "log.html", title=HOSTILE[1]),
        "plain": Model(result.D, result.coder, L2Ball()).report(folder / "plain.html"),
    }


def show(tab, path, width=1300, dark=False, media=""):
    tab.resize(width, 844 if width < 600 else 1000)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    tab.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
    tab.open(path.as_uri())


@pytest.mark.parametrize("kind", ["pictures", "lines", "features", "log", "plain"])
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1300, 390])
def test_a_page_loads_without_complaints_or_requests(tab, pages, kind, dark, width):
    show(tab, pages[kind], width, dark)
    assert tab.complaints() == []
    foreign = [one for one in tab.requests() if not one.startswith("data:")]
    assert foreign == [pages[kind].as_uri()]
    assert tab.run("document.documentElement.scrollWidth") <= width
    red = tab.run("parseInt(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
    assert (red < 60) == dark
    smallest = tab.run(
        "Math.min(...[...document.querySelectorAll('p, td, dt, dd, figcaption, th')]"
        ".map(node => parseFloat(getComputedStyle(node).fontSize)))"
    )
    assert smallest >= 12
    broken = "[...document.images].filter(one => !one.naturalWidth).length"
    assert tab.run(broken) == 0
    nameless = "[...document.images].filter(one => !one.alt).length"
    assert tab.run(nameless) == 0


def test_the_policy_forbids_foreign_requests(tab, pages):
    show(tab, pages["plain"])
    tab.run("new Image().src = 'https://example.org/a.png'; 1")
    tab.run("new Promise(done => setTimeout(done, 200)).then(() => 1)")
    assert any("Content Security Policy" in one for one in tab.complaints())


def test_hostile_names_are_text(tab, pages):
    show(tab, pages["features"])
    tab.run("document.querySelectorAll('*').forEach("
            "node => node.dispatchEvent(new MouseEvent('mouseover')))")  # fmt: skip
    assert tab.run("window.hacked === undefined")
    assert tab.run("document.title") == HOSTILE[0]
    assert tab.run("document.querySelector('h1').textContent") == HOSTILE[0]
    text = tab.run("document.body.innerText")
    for name in HOSTILE[:4]:
        assert name in text
    assert "x" * 40 in text
    assert tab.run("document.querySelectorAll('.chips b, .chips img').length") == 0


@pytest.mark.parametrize("width", [1300, 390])
def test_a_long_name_does_not_break_numbers(tab, pages, width):
    show(tab, pages["features"], width)
    heights = tab.run(
        "[...document.querySelectorAll('.features th, .features td:not(:first-child)')]"
        ".map(cell => { const range = document.createRange(); range.selectNodeContents(cell);"
        " return range.getBoundingClientRect().height; })"
    )
    assert len(heights) > 20
    assert max(heights) < 24  # one line
    assert tab.run("document.documentElement.scrollWidth") <= width


def column(tab, number):
    """The values of a column, top down, of the rows that are shown."""
    return tab.run(
        "[...document.querySelectorAll('.atoms tbody tr')].filter(row => !row.hidden)"
        f".map(row => parseFloat(row.cells[{number}].dataset.v))"
    )


def names_of_columns(tab):
    return tab.run("[...document.querySelectorAll('.atoms th')].map(cell => cell.textContent)")


def click(tab, number):
    tab.run(f"document.querySelectorAll('.atoms th button')[{number}].click()")


@pytest.mark.parametrize("kind", ["pictures", "lines", "features", "plain"])
def test_the_table_sorts(tab, pages, kind):
    show(tab, pages[kind])
    names = names_of_columns(tab)
    before = column(tab, 0)
    assert sorted(before) == list(range(30))
    for number, name in enumerate(names):
        if number == 1:
            continue  # pictures, lines or features
        click(tab, number)
        first = column(tab, number)
        click(tab, number)
        second = column(tab, number)
        rising, falling = sorted(first), sorted(first, reverse=True)
        wanted = [rising, falling] if name in ("atom", "last used") else [falling, rising]
        assert [first, second] == wanted
    marked = "[...document.querySelectorAll('.atoms th[aria-sort]')].length"
    assert tab.run(marked) == 1
    click(tab, 0)
    assert column(tab, 0) == list(range(30))


def search(tab, words):
    tab.run(
        f"(box => {{ box.value = {json.dumps(words)}; box.dispatchEvent(new Event('input')); }})"
        "(document.querySelector('#search'))"
    )
    return column(tab, 0), tab.run("document.querySelector('#found').textContent")


def test_the_table_is_searched(tab, pages):
    show(tab, pages["features"])
    everything, text = search(tab, "")
    assert len(everything) == 30
    assert text == "30 of 30 atoms"
    genes, text = search(tab, "GENE 3")
    assert 0 < len(genes) < 30
    assert text == f"{len(genes)} of 30 atoms"
    both, _ = search(tab, "gene 3, gene 5")
    assert set(both) < set(genes)
    assert search(tab, "17")[0] == [17]
    scripts, _ = search(tab, HOSTILE[0].lower())
    assert scripts
    nothing, text = search(tab, "no such word")
    assert not nothing
    assert text == "0 of 30 atoms"


def test_a_chart_tells_the_value_at_the_pointer(tab, pages):
    show(tab, pages["lines"])
    box = tab.run(
        "(b => ({x: b.x + b.width / 2, y: b.y + b.height / 2}))"
        "(document.querySelector('.chart svg').getBoundingClientRect())"
    )
    tab.call("Input.dispatchMouseEvent", type="mouseMoved", **box)
    told = tab.wait_for("document.querySelector('.chart output').textContent")
    assert " at " in told
    assert tab.run("document.querySelectorAll('.cursor').length") == 1


def test_a_picture_leads_to_its_row(tab, pages):
    show(tab, pages["pictures"])
    link = tab.run("document.querySelector('.mosaic a').hash")
    tab.run("document.querySelector('.mosaic a').click()")
    tab.wait_for(f"location.hash === {json.dumps(link)}")
    assert tab.run("document.querySelector('.atoms tr:target') !== null")


def test_a_page_prints(tab, tmp_path):
    D = np.random.default_rng(0).standard_normal((400, 16))
    path = Model(D, Lasso(0.1), L2Ball()).report(tmp_path / "a.html", patch_shape=(4, 4))
    show(tab, path, dark=True, media="print")
    shown = "[...document.querySelectorAll('.atoms tbody tr')].filter(r => r.offsetHeight).length"
    assert tab.run(shown) == 40
    assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert tab.run("document.querySelector('.search').offsetHeight") == 0
    assert len(tab.call("Page.printToPDF")["data"]) > 10_000


def patiently(tab, script, seconds=40):
    """Wait until an expression is true in a page that may load itself again in between."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if value := tab.run(script):
                return value
        except AssertionError:  # the page was just being loaded
            pass
        time.sleep(0.05)
    raise AssertionError(script)


def test_a_page_grows_while_a_run_goes_on_and_then_stops_reloading(
    tab, data, tmp_path, monkeypatch
):
    monkeypatch.setattr(live, "_SHARE", 1e9)
    path, go_on = tmp_path / "run.html", threading.Semaphore(0)
    steps = "parseInt(document.body.innerText.match(/([\\d,]+) steps/)[1])"

    def wait(state, record):
        assert go_on.acquire(timeout=60)

    # The page of a step is written before the next step waits.
    report = Report(path, 0, patch_shape=(3, 4))
    run = threading.Thread(
        target=learn,
        args=(data, 20, Lasso(0.1)),
        kwargs={"max_steps": 9, "callbacks": [report, wait], "random_state": 0,
                "learner": Online(50)},
    )  # fmt: skip
    run.start()
    try:
        while "1 steps" not in (path.read_text() if path.exists() else ""):
            time.sleep(0.02)
        show(tab, path)
        assert patiently(tab, "document.querySelector('#status').textContent") == "running"
        assert patiently(tab, steps) == 1
        patiently(
            tab, "(box => { box.value = '7'; box.dispatchEvent(new Event('input')); return 1; })"
            "(document.querySelector('#search'))",
        )  # fmt: skip
        for _ in range(4):
            go_on.release()
        assert patiently(tab, f"{steps} === 5")
        found = patiently(tab, "document.querySelector('#found').textContent")
        assert found == "1 of 20 atoms"  # the search is as it was
        for _ in range(5):
            go_on.release()
        run.join(60)
        assert patiently(tab, "document.querySelector('#status').textContent === 'ended'")
        assert patiently(tab, f"{steps} === 9")
        assert tab.complaints() == []
        tab.run("window.stays = 1")
        time.sleep(3)
        assert tab.run("window.stays") == 1
        assert tab.run("document.querySelector('meta[http-equiv=refresh]') === null")
    finally:
        for _ in range(20):
            go_on.release()
        run.join(60)


def test_a_page_whose_run_was_killed_says_that_there_is_no_news(tab, pages, tmp_path):
    text = pages["plain"].read_text()
    old = text.replace('data-written="', 'data-every="30" data-written="1')  # centuries ago or so
    old = old.replace('data-written="1', f'data-written="{time.time() - 1200:.0f}" data-x="')
    path = tmp_path / "old.html"
    path.write_text(old)
    show(tab, path)
    told = tab.run("document.querySelector('.why').textContent")
    assert told == "There has been no news for 20 minutes: the run may have been killed."

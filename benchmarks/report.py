"""How large a report is, how long it takes to write, and how soon it opens, sorts and filters in Chromium: `python benchmarks/report.py [--offers N]`.

The reach is 1.5 MB and 300 ms each for opening, sorting and filtering a market of 1,000 offers.  Opening counts from the navigation to the end of the page's
own script and the first frame after it; the others from the click or the input to the frame that shows the result.  The market is made up (it is
`tests/unit/render/report_story.py`'s), the browser is real and driven over the DevTools pipe; it is started once and each visit is to a page of its own name.
A sort while all rows are shown draws the first hundred at once and the others in the frames after it, so both moments are told.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from timing import Row, warm

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from planner.app.report import assets  # noqa: E402
from planner.render import report_data, report_html  # noqa: E402
from tests.e2e.chromium import Chromium  # noqa: E402
from tests.unit.render.report_story import large  # noqa: E402

REACH = "300 ms"
PAINTED = "new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)))"
OPENED = f"{PAINTED}.then(() => performance.now())"
SORTED = f"(() => {{ const b = document.querySelectorAll('#j0-offers thead button')[COLUMN]; const t = performance.now(); b.click(); return {PAINTED}.then(() => performance.now() - t); }})()"
FILTERED = f"(() => {{ const i = document.querySelector('#j0-market input[type=search]'); i.value = 'TEXT'; const t = performance.now(); i.dispatchEvent(new Event('input')); return {PAINTED}.then(() => {PAINTED}).then(() => performance.now() - t); }})()"
ALL = f"(() => {{ const b = document.querySelectorAll('#j0-offers thead button')[COLUMN], n = document.querySelectorAll('#j0-offers tbody tr').length; const t = performance.now(); b.click(); const look = () => document.querySelectorAll('#j0-offers tbody tr').length === n ? performance.now() - t : {PAINTED}.then(look); return {PAINTED}.then(look); }})()"
WHOLE = "document.querySelectorAll('#j0-market .more')[1].click()"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--offers", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=9)
    given = parser.parse_args()
    print("| what | reach | median | least | note |\n|---|---|---:|---:|---|")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name, Chromium(Path(name)) as browser:
        for jobs in (1, 3, 10):
            told = f"{given.offers:,} offers x {jobs} job{'s' if jobs > 1 else ''}"
            report = large(given.offers, jobs)
            html = report_html.document(report, assets())
            data = len(report_data.embedded(report_data.document(report)))
            size = len(html.encode())
            print(
                Row(
                    f"{told}: size of the file",
                    size,
                    size,
                    "1,500,000 bytes" if jobs <= 3 else "",
                    f"{data:,} of them data",
                    "bytes",
                ).cells()
            )
            print(
                Row(f"{told}: write", *warm(lambda r=report: report_html.document(r, assets()), given.repeats)).cells()
            )
            for row in _rows(browser, Path(name), html, told, offers=given.offers, repeats=given.repeats):
                print(row.cells())


def _rows(browser: Chromium, folder: Path, html: str, told: str, *, offers: int, repeats: int) -> list[Row]:
    def opened(k: int) -> float:
        path = folder / f"page{k}.html"
        path.write_text(html, encoding="utf-8")
        browser.visit("about:blank")
        browser.visit(path.as_uri())
        return _ms(browser, OPENED)

    opening = [opened(k) for k in range(repeats)]
    if "x 1 " not in told:
        browser.value("document.querySelectorAll('[role=tab]')[1].click()")
    sorting = [_ms(browser, SORTED.replace("COLUMN", str(k % 13))) for k in range(2 * repeats)]
    filtering = [
        _ms(browser, FILTERED.replace("TEXT", text)) for text in ("h200 spot", "type-7", "", "region-3 nebius") * 3
    ]
    _ms(browser, FILTERED.replace("TEXT", ""))
    browser.value(WHOLE)
    _ms(
        browser,
        f"(() => {{ const look = () => document.querySelectorAll('#j0-offers tbody tr').length >= {offers} ? 1 : {PAINTED}.then(look); return look(); }})()",
    )
    every = [_ms(browser, ALL.replace("COLUMN", str(k % 13))) for k in range(repeats)]
    whole = [_ms(browser, SORTED.replace("COLUMN", str(k % 13))) for k in range(2 * repeats)]
    return [
        _row(f"{told}: open", opening),
        _row(f"{told}: sort, 100 rows shown", sorting),
        _row(f"{told}: filter", filtering),
        _row(f"{told}: sort, all rows shown, until the first 100 stand", whole),
        _row(f"{told}: the same, until all stand", every, reach=""),
    ]


def _row(what: str, times: list[float], reach: str = REACH) -> Row:
    return Row(what, statistics.median(times) / 1000, min(times) / 1000, reach, f"most {max(times):,.1f} ms")


def _ms(browser: Chromium, expression: str) -> float:
    answer = browser.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
    return float(answer["result"]["value"])


if __name__ == "__main__":
    main()

"""Takes pictures of every page: `python -m tests.edge.page.shots HOME FOLDER [--widths 360,1280,2000]
[--schemes light,dark] [--only now,search] [--ask QUESTION] [--write] [--whole]`.
"""

import argparse
import os
from pathlib import Path
from urllib.parse import quote_plus

from tests.edge.page.browser import chromium, page_of

PLACES = {
    "now": "/page/now",
    "search": "/page/search?text={ask}",
    "searched_in_vain": "/page/search?text=how+do+we+rotate+the+certificates+of+the+mail+relay",
    "search_empty": "/page/search",
    "memories": "/page/memory",
    "memory": ("/page/search?text={ask}", ".results li:nth-child({result}) h2 a"),
    "timeline": "/page/timeline?days=3",
    "session": ("/page/timeline?days=3", "aside .rows li:nth-child(5) a"),
    "theses": "/page/theses",
    "thesis": ("/page/theses", ".theses h2 a"),
    "review": "/page/review",
    "work": "/page/work",
    "query": "/page/query?method=session.list&params=%7B%22last_of_each%22%3Atrue%7D",
}
HEIGHTS = {360: 780, 1280: 860, 2000: 1200}


def shoot(url: str, given: argparse.Namespace) -> None:
    """Take them, each as WIDTH-SCHEME-PAGE.png."""
    given.folder.mkdir(parents=True, exist_ok=True)
    origin = url.partition("/#")[0]
    for scheme in given.schemes.split(","):
        for width in map(int, given.widths.split(",")):
            size = {"width": width, "height": HEIGHTS.get(width, 900)}
            with chromium(viewport=size, color_scheme=scheme, reduced_motion="reduce") as context:
                tab = context.pages[0]
                tab.on("console", lambda said: print(said.type, said.text))  # noqa: T201
                tab.on("pageerror", lambda error: print("error", error))  # noqa: T201
                tab.goto(url)
                for name, place in PLACES.items():
                    if given.only and name not in given.only.split(","):
                        continue
                    path, click = place if isinstance(place, tuple) else (place, "")
                    path, click = path.format(ask=quote_plus(given.ask)), click.format(result=given.result)
                    tab.goto(origin + path)
                    tab.wait_for_selector("main .page")
                    if click:
                        tab.click(click)
                        tab.wait_for_selector(".facts, .belief.large, .story")
                    tab.wait_for_selector("main:not([aria-busy])")
                    tab.wait_for_timeout(300)
                    wide = tab.evaluate("document.documentElement.scrollWidth")
                    if wide > width:
                        print(f"{name} is {wide} wide at {width}")  # noqa: T201
                    tab.screenshot(path=given.folder / f"{width}-{scheme}-{name}.png", full_page=given.whole)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--widths", default="360,1280,2000")
    parser.add_argument("--schemes", default="light,dark")
    parser.add_argument("--only", default="")
    parser.add_argument("--ask", default="why is an answer late")
    parser.add_argument("--result", type=int, default=1, help="whose memory is shown")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    with page_of(
        {**os.environ, "OMEGAD_HOME": str(given.home)}, *(["--write"] if given.write else [])
    ) as address:
        shoot(address, given)

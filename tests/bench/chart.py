"""Draws the results of a benchmark: python3 chart.py results.json results.svg

One panel for each table, one bar for each client: what it did in a second where the table has that, else its
median.
"""

import html
import json
import sys

WIDTH, LABEL, BAR, GAP, HEAD = 760, 230, 18, 4, 34
COLOURS = {"redlock": "#c0392b", "raw": "#7f8c8d"}
PEER = "#bdc3c7"
MEASURES = {"acq_per_s": "acquisitions/s", "ops_per_s": "ops/s", "p50_us": "p50"}


def measure_of(table: dict) -> str | None:
    return next((measure for measure in MEASURES if measure in table["rows"][0]), None)


def text(value: float, measure: str) -> str:
    if measure != "p50_us":
        return f"{value:.0f}"
    return f"{value / 1000:.2f} ms" if value >= 1000 else f"{value:.0f} µs"


def colour(client: str) -> str:
    return COLOURS.get(client.split()[0], PEER)


def element(name: str, content: str = "", **attributes) -> str:
    words = "".join(f' {key.replace("_", "-")}="{value}"' for key, value in attributes.items())
    return f"<{name}{words}>{html.escape(content)}</{name}>"


def bar(row: dict, measure: str, longest: float, y: int) -> list:
    length = max(1.0, row[measure] / longest * (WIDTH - LABEL - 90))
    middle = y + BAR - 5
    return [
        element("text", row["client"], x=LABEL - 8, y=middle, text_anchor="end"),
        element("rect", x=LABEL, y=y, width=f"{length:.1f}", height=BAR, fill=colour(row["client"])),
        element("text", text(row[measure], measure), x=f"{LABEL + length + 6:.1f}", y=middle),
    ]


def panel(table: dict, measure: str, y: int) -> tuple:
    rows = [row for row in table["rows"] if row[measure] is not None]
    longest = max(row[measure] for row in rows)
    title = ": ".join(part for part in (table["scenario"], table["setting"]) if part) + ", " + MEASURES[measure]
    parts = [element("text", title, x=8, y=y + 22, font_weight="bold")]
    y += HEAD
    for row in rows:
        parts += bar(row, measure, longest, y)
        y += BAR + GAP
    return parts, y


def chart(results: dict) -> str:
    parts, y = [], HEAD
    parts.append(element("text", "One op: acquire + release on 5 nodes", x=8, y=22, font_size=15))
    for table in results["tables"]:
        if measure := measure_of(table):
            drawn, y = panel(table, measure, y)
            parts += drawn
    y += 26
    parts.append(element("text", f'{results["machine"]}; {results["date"]}', x=8, y=y - 8, font_size=10))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" '
        'font-family="sans-serif" font-size="12">'
    )
    return "\n".join([head, element("rect", width="100%", height="100%", fill="white"), *parts, "</svg>\n"])


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(chart(results))


main()

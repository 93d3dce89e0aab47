"""Draws how many operations a second are made at the same time: python3 many.py results.json many.svg

There are four panels for the scenario many: operations a second, the same with one node frozen, and the median and the
99th percentile of the time of one operation. Each client has a line, with a point for each number of operations that
are under way at the same time. Both axes are logarithmic.
"""

import math
import re

import svg

PANEL, HEIGHT, GUTTER, MARGIN = 404, 240, 16, 12
AXIS, HEAD, LEGEND = 52, 34, 152

# What a line shows, its colour, and the names of its rows, with the number of operations at the same time. A client that
# makes one operation at a time in one thread has a point only.
LINES = (
    ("redlock, threads", "ours", r"redlock, (\d+) threads?"),
    ("redlock, one thread with an event loop", "valid", r"redlock, a loop with (\d+)"),
    ("redlock, one thread with coroutines of Boost.Asio", "asio", r"redlock, Asio with (\d+) coroutines?"),
    ("redlock, threads without shared connections", "granted", r"redlock, (\d+) threads?, own connections"),
    ("raw hiredis, threads", "floor", r"raw, (\d+) threads?"),
    ("raw hiredis, one thread that pipelines", "drift", r"raw, 1 thread that pipelines (\d+)"),
    ("redis-plus-plus, threads", "trouble", r"redis-plus-plus, (\d+) threads?"),
    ("node-redlock, one process", "unawaited", r"node-redlock()"),
)
ALL_NODES, ONE_FROZEN = 0, 2  # tables of the scenario
PANELS = (
    (ALL_NODES, "ops_per_s", "Acquire + release, operations a second", lambda value: f"{value:,.0f}"),
    (ONE_FROZEN, "ops_per_s", "The same, while one of five nodes is frozen", lambda value: f"{value:,.0f}"),
    (ALL_NODES, "p50_us", "Time of one operation, median", lambda value: f"{value / 1000:g} ms"),
    (ALL_NODES, "p99_us", "Time of one operation, 99th percentile", lambda value: f"{value / 1000:g} ms"),
)


def points_of(rows: list, pattern: str, measure: str) -> list:
    points = []
    for row in rows:
        found = re.fullmatch(pattern, row["client"])
        if found and row.get(measure):
            points.append((int(found.group(1) or 1), row[measure]))
    return sorted(points)


def draw_panel(rows: list, measure: str, title: str, text_of, x: float, top: float) -> list:
    lines = [(colour, points_of(rows, pattern, measure)) for _, colour, pattern in LINES]
    values = [value for _, points in lines for _, value in points]
    most_ops = max(ops for _, points in lines for ops, _ in points)
    least, most = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    bottom = top + HEAD + HEIGHT

    def place(ops: int, value: float) -> tuple:
        right = math.log(ops) / math.log(most_ops) * (PANEL - AXIS - 16)
        return x + AXIS + right, bottom - (math.log10(value) - least) / (most - least) * HEIGHT

    parts = [svg.text(title, x, top + 20, font_size=13, font_weight="bold")]
    for power in range(least, most + 1):
        _, y = place(1, 10**power)
        parts.append(svg.line(x + AXIS, y, x + PANEL, y))
        parts.append(svg.text(text_of(10**power), x + AXIS - 6, y + 4, "muted", text_anchor="end", font_size=10))
    for ops in sorted({ops for _, points in lines for ops, _ in points}):
        parts.append(svg.text(f"{ops:,}", place(ops, 1)[0], bottom + 16, "muted", text_anchor="middle", font_size=10))
    parts.append(svg.text("operations at the same time", x + AXIS, bottom + 32, "muted", font_size=11))
    for colour, points in lines:
        places = [place(*point) for point in points]
        for (x1, y1), (x2, y2) in zip(places, places[1:]):
            parts.append(svg.line(x1, y1, x2, y2, f"s-{colour}", stroke_width=2))
        parts += [svg.rect(right - 3, y - 3, 6, 6, colour) for right, y in places]
    return parts


def legend(rows: list, top: float) -> list:
    parts = []
    shown = [(name, colour) for name, colour, pattern in LINES if points_of(rows, pattern, "ops_per_s")]
    for number, (name, colour) in enumerate(shown):
        x, y = MARGIN + (number % 2) * (PANEL + GUTTER), top + 18 * (number // 2)
        parts += [svg.rect(x, y - 8, 10, 10, colour), svg.text(name, x + 16, y, font_size=11)]
    return parts


def summary(rows: list) -> str:
    said = []
    for name, _, pattern in LINES:
        points = points_of(rows, pattern, "ops_per_s")
        if points:
            said.append(f"{name}: " + ", ".join(f"{value:,.0f} a second with {ops:,}" for ops, value in points))
    return "; ".join(said)


def picture(results: dict) -> str:
    tables = [table["rows"] for table in results["tables"] if table["scenario"] == "many"]
    rows = tables[ALL_NODES]
    parts = []
    for number, (table, measure, title, text_of) in enumerate(PANELS):
        x, y = MARGIN + number % 2 * (PANEL + GUTTER), number // 2 * (HEAD + HEIGHT + AXIS)
        parts += draw_panel(tables[table], measure, title, text_of, x, y)
    top = 2 * (HEAD + HEIGHT + AXIS) + 8
    parts += legend(rows, top)
    notes = (
        "Each operation has its own resource. Five nodes, all at once, loopback TCP. The servers run on the same machine.",
        results["machine"],
        f"{results['date']}, commit {results['commit']}",
    )
    for number, note in enumerate(notes):
        parts.append(svg.text(note, MARGIN, top + 76 + 16 * number, "muted", font_size=11))
    return svg.document(
        2 * (MARGIN + PANEL) + GUTTER,
        2 * (HEAD + HEIGHT + AXIS) + LEGEND - 28,
        "How many operations a second are made at the same time, and how long they take",
        summary(rows),
        parts,
    )


svg.convert(picture)

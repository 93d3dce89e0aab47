"""Draws how long each of many processes waits for one resource: python3 waits.py results.json waits.svg

There are two panels for the scenario contention: plain retry, and the queue. Each process has a bar up to its 99th
percentile, a second bar behind it up to its longest wait, and a line at its median.
"""

import math

import svg

PANEL, HEIGHT, GUTTER, MARGIN = 404, 180, 16, 12
AXIS, HEAD, FOOT = 44, 46, 44

PANELS = (
    ("plain", "Plain retry", "floor"),
    ("fair", "LockOptions::fair: a queue, and woken by the release", "ours"),
)


def step_for(longest: float) -> float:
    magnitude = 10 ** math.floor(math.log10(longest))
    return next(magnitude * it for it in (0.2, 0.5, 1, 2, 5) if longest <= 5 * magnitude * it)


def summary(rows: list, client: str, seconds: float) -> str:
    had = [row[f"{client}_had"] for row in rows]
    longest = max(row[f"{client}_max_ms"] for row in rows)
    return (
        f"{sum(had) / seconds:,.0f} acquisitions a second, {min(had):.0f} to {max(had):.0f} by one process, "
        f"longest wait {longest:,.0f} ms"
    )


def draw_panel(rows: list, client: str, colour: str, x: float, top: float, most: float) -> list:
    bottom = top + HEIGHT
    step = step_for(most)
    parts = []

    def height(value: float) -> float:
        return value / (step * math.ceil(most / step)) * HEIGHT

    for number in range(math.ceil(most / step) + 1):
        y = bottom - height(step * number)
        parts.append(svg.line(x + AXIS, y, x + PANEL, y))
        parts.append(svg.text(f"{step * number:g} ms", x + AXIS - 6, y + 4, "muted", text_anchor="end", font_size=10))
    width = (PANEL - AXIS) / len(rows)
    for number, row in enumerate(rows):
        left = x + AXIS + width * number + 1
        for quantile, cls in (("max", "peer"), ("p99", colour)):
            tall = height(row[f"{client}_{quantile}_ms"])
            parts.append(svg.rect(left, bottom - tall, width - 2, tall, cls))
        middle = bottom - height(row[f"{client}_p50_ms"])
        parts.append(svg.line(left, middle, left + width - 2, middle, "s-ink", stroke_width=2))
    return parts


def picture(results: dict) -> str:
    table = next(table for table in results["tables"] if table["scenario"] == "waits")
    rows = table["rows"]
    seconds = float(table["setting"].split(", ")[-1].split()[0])
    most = max(row[f"{client}_max_ms"] for row in rows for client, _, _ in PANELS)
    parts, said = [], []
    for number, (client, title, colour) in enumerate(PANELS):
        x = MARGIN + number * (PANEL + GUTTER)
        what = summary(rows, client, seconds)
        said.append(f"{title}: {what}")
        parts.append(svg.text(title, x, 24, font_size=13, font_weight="bold"))
        parts.append(svg.text(what, x, 40, "muted", font_size=11))
        parts += draw_panel(rows, client, colour, x, HEAD + 12, most)
        parts.append(
            svg.text(
                f"the {len(rows)} processes, those with the most acquisitions first",
                x + AXIS,
                HEAD + HEIGHT + 28,
                "muted",
                font_size=11,
            )
        )
    notes = (
        "Bar: what 99 of 100 waits of the process were shorter than; pale: its longest; line: half of its waits were shorter.",
        f"{table['setting']}; five nodes, all at once.",
        results["machine"],
        f"{results['date']}, commit {results['commit']}",
    )
    for number, note in enumerate(notes):
        parts.append(svg.text(note, MARGIN, HEAD + HEIGHT + FOOT + 8 + 16 * number, "muted", font_size=11))
    return svg.document(
        2 * (MARGIN + PANEL) + GUTTER,
        HEAD + HEIGHT + FOOT + 68,
        f"How long each of {len(rows)} processes waits for one resource",
        "; ".join(said),
        parts,
    )


svg.convert(picture)

"""Draws the results of a benchmark: python3 benchmarks.py results.json results.svg

There is a panel for each table that is worth a picture. It has a bar for each client, with the measured ratio beside
it. If the results have only some of the scenarios, the picture has only their panels.
"""

import math
from dataclasses import dataclass

import svg

COLUMN, GUTTER, MARGIN = 420, 12, 4
LABEL, ROW, BAR, VALUE = 148, 20, 14, 112
HEAD, FOOT = 46, 34

# The groups: clients that ask one node after the other, and clients that ask all at once. The first of each is the raw
# client.
GROUPS = (
    ("raw sequential", "redlock sequential", "redis-plus-plus"),
    ("raw multiplexed", "redlock all-at-once", "redlock fair", "node-redlock"),
)


@dataclass(frozen=True)
class Panel:
    scenario: str
    setting: str
    title: str
    measure: str
    what: str
    ratio: tuple  # the column of the ratio in each group
    of: str


LATENCY = ("p50_us", "p50 of one op, less is better")
ACQUISITIONS = ("acq_per_s", "acquisitions a second, more is better")
ALLOCATIONS = ("allocations", "less is better")

TO_RAW = (("x_raw_seq", "x_raw_mux"), "raw")
TO_MULTIPLEXED = (("x_raw", "x_raw"), "raw multiplexed")
TO_NO_FAULT = (("x_no_fault", "x_no_fault"), "no fault")
TO_NOTHING = ((None, None), "")

PANELS = (
    Panel("loopback", "TCP, on one CPU", "Loopback TCP, everything on one CPU", *LATENCY, *TO_RAW),
    Panel("loopback", "unix sockets, on one CPU", "Unix sockets, everything on one CPU", *LATENCY, *TO_RAW),
    Panel("1 ms RTT", "", "1 ms round trip to each node", *LATENCY, *TO_RAW),
    Panel("faults", "one node frozen", "One node frozen, after the first op", *LATENCY, *TO_NO_FAULT),
    Panel("faults", "one node killed", "One node killed, after the first op", *LATENCY, *TO_NO_FAULT),
    Panel(
        "contention",
        "8 processes, hold 1 ms, retry delay 10 ms",
        "8 processes after one resource",
        *ACQUISITIONS,
        *TO_MULTIPLEXED,
    ),
    Panel("work per op", "counted, not timed", "Heap allocations per op", *ALLOCATIONS, *TO_NOTHING),
)


@dataclass(frozen=True)
class Bar:
    client: str
    value: float | None
    ratio: float | None
    group: int

    @property
    def colour(self) -> str:
        return {"redlock": "ours", "raw": "floor"}.get(self.client.split()[0], "peer")


@dataclass(frozen=True)
class Scale:
    """A scale from zero to a round number, in a few steps."""

    step: float
    steps: int

    @staticmethod
    def for_values(longest: float) -> "Scale":
        magnitude = 10 ** math.floor(math.log10(longest))
        step = next(magnitude * it for it in (0.2, 0.5, 1, 2, 5) if longest <= 4 * magnitude * it)
        return Scale(step, math.ceil(longest / step))

    def x(self, value: float) -> float:
        return LABEL + value / (self.step * self.steps) * (COLUMN - LABEL - VALUE)


def bars_of(panel: Panel, table: dict) -> list:
    rows = {row["client"]: row for row in table["rows"]}
    bars = []
    for group, clients in enumerate(GROUPS):
        for client in clients:
            if client in rows:
                row = rows[client]
                bars.append(Bar(client, row[panel.measure], row.get(panel.ratio[group]), group))
    return bars


def amount(value: float, measure: str) -> str:
    if measure != "p50_us":
        return f"{value:,.0f}"
    return f"{value / 1000:.2f} ms" if value >= 1000 else f"{value:.0f} µs"


def hundredths(ratio: float) -> str:
    """Formats a ratio with two digits. Half of a hundredth is rounded up, as people do."""
    return f"{math.floor(ratio * 100 + 0.5 + 1e-9) / 100:.2f}"


def tick(value: float, measure: str, longest: float) -> str:
    if measure != "p50_us":
        return f"{value:,.0f}"
    return f"{value / 1000:g} ms" if longest >= 1000 else f"{value:g} µs"


def draw_bar(bar: Bar, panel: Panel, scale: Scale, x: float, y: float) -> list:
    middle = y + BAR - 3
    weight = {"font_weight": "bold"} if bar.colour == "ours" else {}
    label = svg.text(bar.client, x + LABEL - 8, middle, text_anchor="end", **weight)
    if bar.value is None:
        return [
            label,
            svg.text("acquires nothing", x + LABEL + 6, middle, "muted s-paper", paint_order="stroke", stroke_width=4),
        ]
    end = x + scale.x(bar.value)
    said = amount(bar.value, panel.measure)
    if bar.ratio is not None:
        said += f" ({hundredths(bar.ratio)}×)"
    return [
        label,
        svg.rect(x + LABEL, y, end - x - LABEL, BAR, bar.colour),
        svg.text(said, end + 6, middle, "ink s-paper", paint_order="stroke", stroke_width=4, **weight),
    ]


def draw_axis(panel: Panel, scale: Scale, x: float, top: float, bottom: float) -> list:
    parts = []
    for step in range(scale.steps + 1):
        value = scale.step * step
        at = x + scale.x(value)
        parts.append(svg.line(at, top - 3, at, bottom, "s-line"))
        label = tick(value, panel.measure, scale.step * scale.steps)
        parts.append(svg.text(label, at, bottom + 13, "muted", text_anchor="middle", font_size=10))
    return parts


def height(bars: list) -> float:
    groups = len({bar.group for bar in bars})
    return HEAD + ROW * len(bars) + 6 * (groups - 1) + FOOT


def draw_panel(panel: Panel, bars: list, x: float, y: float) -> list:
    scale = Scale.for_values(max(bar.value or 0 for bar in bars) or 1)
    what = panel.what + (f"; × {panel.of}" if panel.of else "")
    parts = [
        svg.text(panel.title, x + 8, y + 16, font_size=13, font_weight="bold"),
        svg.text(what, x + 8, y + 32, "muted", font_size=11),
    ]
    top = y + HEAD
    bottom = y + height(bars) - FOOT
    parts += draw_axis(panel, scale, x, top, bottom)
    for number, bar in enumerate(bars):
        parts += draw_bar(bar, panel, scale, x, top + ROW * number + 6 * (bar.group - bars[0].group))
    return parts


def in_words(panel: Panel, bars: list) -> str:
    said = (f"{bar.client} {amount(bar.value, panel.measure)}" for bar in bars if bar.value is not None)
    return f"{panel.title}: {', '.join(said)}"


def chart(results: dict) -> str:
    tables = {(table["scenario"], table["setting"]): table for table in results["tables"]}
    chosen = [panel for panel in PANELS if (panel.scenario, panel.setting) in tables]
    drawn = [(panel, bars) for panel in chosen if (bars := bars_of(panel, tables[panel.scenario, panel.setting]))]
    parts, y = [], 8.0
    for pair in (drawn[i : i + 2] for i in range(0, len(drawn), 2)):
        for column, (panel, bars) in enumerate(pair):
            parts += draw_panel(panel, bars, MARGIN + column * (COLUMN + GUTTER), y)
        y += max(height(bars) for _, bars in pair)
    notes = (
        "One op is acquire + release on five nodes. raw: hiredis doing the same commands without any logic.",
        "×: the ratio to raw of the same kind of round, or to the same client without the fault, batch by batch.",
        results["machine"],
        f'{results["date"]}, commit {results["commit"]}',
    )
    for note in notes:
        parts.append(svg.text(note, MARGIN + 8, y + 8, "muted", font_size=11))
        y += 16
    description = "; ".join(
        f"{panel.title}: "
        + ", ".join(f"{bar.client} {amount(bar.value, panel.measure)}" for bar in bars if bar.value is not None)
        for panel, bars in drawn
    )
    return svg.document(
        2 * (MARGIN + COLUMN) + GUTTER, round(y + 6), "What acquire + release costs", description, parts
    )


svg.convert(chart)

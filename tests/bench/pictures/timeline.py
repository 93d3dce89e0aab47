"""Draws two acquisitions, exchange by exchange: python3 timeline.py timeline.json timeline.svg

Both have the same scale. The axis has a break between the end of the rounds and the end of the validity, because
nothing happens there.
"""

import math

import svg

WIDTH, LEFT, RIGHT, BREAK = 860, 76, 14, 46
ROW, BAR, HEAD, FOOT = 22, 14, 72, 56
VOTES = {"granted": "granted", "timed out": "trouble", "not awaited": "unawaited"}


class Axis:
    """Converts milliseconds to pixels. The axis has two parts of the same scale, with a break in between."""

    def __init__(self, acquisitions: list):
        def latest(field):
            return max(it[field] for it in acquisitions) / 1000

        self.left_end = math.ceil(max(latest("round_ended_us") + 5, latest("quorum_us") + 6) / 2) * 2
        self.right_begin = math.floor((min(it["valid_until_us"] for it in acquisitions) / 1000 - 3) / 2) * 2
        right_end = latest("ttl_us") + 0.5
        room = WIDTH - LEFT - RIGHT - BREAK
        self.scale = room / (self.left_end + right_end - self.right_begin)
        self.break_begin = LEFT + self.left_end * self.scale
        self.break_end = self.break_begin + BREAK
        self.right_end = right_end

    def x(self, ms: float) -> float:
        if ms <= self.left_end:
            return LEFT + ms * self.scale
        return self.break_end + (ms - self.right_begin) * self.scale

    def ticks(self) -> list:
        return [*range(0, self.left_end + 1, 2), *range(self.right_begin, math.floor(self.right_end) + 1, 2)]

    def draw(self, y: float) -> list:
        parts = [
            svg.line(LEFT, y, self.break_begin, y, "s-muted"),
            svg.line(self.break_end, y, self.x(self.right_end), y, "s-muted"),
        ]
        for ms in self.ticks():
            parts.append(svg.line(self.x(ms), y, self.x(ms), y + 4, "s-muted"))
            parts.append(svg.text(str(ms), self.x(ms), y + 16, "muted", text_anchor="middle", font_size=11))
        middle = (self.break_begin + self.break_end) / 2
        parts.append(
            svg.text("ms since the attempt began", LEFT, y + 32, "muted", font_size=11),
        )
        left_out = f"{self.right_begin - self.left_end} ms left out"
        parts.append(svg.text(left_out, middle, y + 32, "muted", text_anchor="middle", font_size=11))
        return parts

    def tear(self, top: float, bottom: float) -> list:
        """Covers everything that crosses the break, with a torn edge on each side."""

        def edge(x: float) -> list:
            steps = round((bottom - top) / 8)
            return [(x + (3 if step % 2 else -3), top + step * (bottom - top) / steps) for step in range(steps + 1)]

        left, right = edge(self.break_begin + 8), edge(self.break_end - 8)

        def points(corners: list) -> str:
            return " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)

        return [
            svg.element("polygon", points=points(left + right[::-1]), cls="paper"),
            svg.element("polyline", points=points(left), fill="none", cls="s-line"),
            svg.element("polyline", points=points(right), fill="none", cls="s-line"),
        ]


def verdict(node: dict) -> str:
    took = (node["end_us"] - node["start_us"]) / 1000
    if node["vote"] != "unknown":
        return node["vote"]
    after = f", {took:.1f} ms" if node["cause"] == "timed out" else ""
    return f"unknown: {node['cause']}{after}"


def exchange(axis: Axis, number: int, node: dict, y: float) -> list:
    begin, end = axis.x(node["start_us"] / 1000), axis.x(node["end_us"] / 1000)
    colour = VOTES["granted" if node["vote"] == "granted" else node["cause"]]
    middle = y + ROW / 2 + 4
    said = verdict(node)
    inside = end - begin > 7 * len(said)
    return [
        svg.text(f"node {number}", LEFT - 12, middle, text_anchor="end"),
        svg.rect(begin, y + (ROW - BAR) / 2, max(1.0, end - begin), BAR, colour),
        svg.text(said, begin + 6 if inside else end + 6, middle, "on-bar" if inside else "ink", font_size=11),
    ]


def mark(axis: Axis, ms: float, label: str, top: float, bottom: float, anchor: str) -> list:
    x = axis.x(ms)
    aside = {"start": x - 1, "end": x + 1, "middle": x}[anchor]
    return [
        svg.line(x, top, x, bottom, "s-ink", stroke_dasharray="3 3"),
        svg.text(label, aside, top - 5, text_anchor=anchor, font_size=11, font_weight="bold"),
    ]


def lock_row(axis: Axis, it: dict, y: float) -> list:
    held, until, ttl = (axis.x(it[field] / 1000) for field in ("round_ended_us", "valid_until_us", "ttl_us"))
    valid = (it["valid_until_us"] - it["round_ended_us"]) / 1000
    drift = (it["ttl_us"] - it["valid_until_us"]) / 1000
    middle = y + ROW / 2 + 4
    return [
        svg.text("the lock", LEFT - 12, middle, text_anchor="end", font_weight="bold"),
        svg.rect(held, y + 1, until - held, ROW - 2, "valid"),
        svg.text(f"valid: {valid:.1f} ms", held + 6, middle, "on-bar", font_size=11),
        svg.rect(until, y + 1, ttl - until, ROW - 2, "drift"),
        svg.text(
            f"drift, {drift:.0f} ms: taken off", (until + ttl) / 2, middle, "on-bar", text_anchor="middle", font_size=11
        ),
    ]


def headline(it: dict, node_timeout_us: int) -> tuple:
    if it["round"] == "sequential":
        return (
            "Sequential round: one node after the other",
            f"The frozen node costs its node_timeout once: {node_timeout_us / 1000:.0f} ms. "
            f"Held after {it['round_ended_us'] / 1000:.1f} ms.",
        )
    return (
        "All at once: written to all nodes, then read from all",
        f"Nobody waits for the frozen node once a majority has granted. Held after "
        f"{it['round_ended_us'] / 1000:.1f} ms.",
    )


def panel(axis: Axis, it: dict, node_timeout_us: int, y: float) -> tuple:
    title, summary = headline(it, node_timeout_us)
    parts = [svg.text(title, 12, y + 20, font_size=14, font_weight="bold"), svg.text(summary, 12, y + 38, "muted")]
    top = y + HEAD
    bottom = top + ROW * (len(it["nodes"]) + 1) + 6
    for number, node in enumerate(it["nodes"], 1):
        parts += exchange(axis, number, node, top + ROW * (number - 1))
    parts += lock_row(axis, it, top + ROW * len(it["nodes"]) + 4)
    parts += axis.tear(top - 4, bottom - 1)
    quorum = it["quorum_us"] / 1000
    parts += mark(axis, 0, "start", top, bottom, "end")
    parts += mark(axis, quorum, f"quorum at {quorum:.1f}", top, bottom, "start")
    parts += mark(axis, it["valid_until_us"] / 1000, "valid_until", top, bottom, "middle")
    parts += mark(axis, it["ttl_us"] / 1000, "start + ttl", top, bottom, "end")
    return parts + axis.draw(bottom), bottom + FOOT


def picture(recorded: dict) -> str:
    acquisitions = recorded["acquisitions"]
    axis = Axis(acquisitions)
    parts, y = [], 6
    for it in acquisitions:
        drawn, y = panel(axis, it, recorded["node_timeout_us"], y)
        parts += drawn
    conditions = (
        f"Recorded {recorded['date']}: five redis-servers {recorded['round_trip_us'] / 1000:.0f} ms away (round trip), "
        f"node {recorded['frozen_node']} stopped by SIGSTOP a moment before; each the median of {recorded['of']} acquisitions."
    )
    parts += [
        svg.text(conditions, 12, y + 4, "muted", font_size=11),
        svg.text(recorded["machine"], 12, y + 20, "muted", font_size=11),
    ]
    description = (
        "For each of five nodes when it was asked, when its vote was known, and what it was; "
        "when the majority was reached; and how the validity follows: start + ttl - drift."
    )
    return svg.document(WIDTH, round(y + 32), "Timeline of an acquisition with one node frozen", description, parts)


svg.convert(picture)

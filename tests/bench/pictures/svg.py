"""The elements of an SVG picture, legible on a light page and on a dark one.

The picture has its own background, because a page may be dark although the browser asks for light.
"""

import html
import json
import sys

# The colours for a light page and for a dark one.
COLOURS = {
    "paper": ("#ffffff", "#0d1117"),
    "ink": ("#1f2328", "#f0f6fc"),
    "muted": ("#59636e", "#9198a1"),
    "line": ("#c8d1da", "#3d444d"),
    "ours": ("#0a6e4f", "#2fa57c"),
    "floor": ("#818b98", "#768390"),
    "peer": ("#c2cad3", "#4a525c"),
    "granted": ("#1a7f37", "#3fb950"),
    "trouble": ("#cf222e", "#da3633"),
    "unawaited": ("#9a6700", "#d29922"),
    "valid": ("#0969da", "#1f6feb"),
    "asio": ("#8250df", "#8957e5"),
    "drift": ("#bc4c00", "#bd561d"),
    "on-bar": ("#ffffff", "#ffffff"),
}


def style() -> str:
    def rules(which: int) -> str:
        return "".join(
            f".{name}{{fill:{both[which]}}}.s-{name}{{stroke:{both[which]}}}" for name, both in COLOURS.items()
        )

    return f"{rules(0)}\n@media (prefers-color-scheme: dark){{{rules(1)}}}"


def element(name: str, content: str = "", **attributes) -> str:
    """Returns an element. `cls` is its class. Numbers are rounded to one digit after the decimal point."""
    words = []
    for key, value in attributes.items():
        key = {"cls": "class"}.get(key, key.replace("_", "-"))
        words.append(f' {key}="{html.escape(f"{value:.1f}" if isinstance(value, float) else str(value))}"')
    return f"<{name}{''.join(words)}>{html.escape(content, quote=False)}</{name}>"


def text(content: str, x: float, y: float, cls: str = "ink", **attributes) -> str:
    return element("text", content, x=x, y=y, cls=cls, **attributes)


def rect(x: float, y: float, width: float, height: float, cls: str) -> str:
    return element("rect", x=x, y=y, width=width, height=height, cls=cls)


def line(x1: float, y1: float, x2: float, y2: float, cls: str = "s-line", **attributes) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, cls=cls, **attributes)


def document(width: int, height: int, title: str, description: str, parts: list) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        "role=\"img\" font-family=\"-apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif\" "
        'font-size="12">'
    )
    about = [element("title", title), element("desc", description), f"<style>{style()}</style>"]
    return "\n".join([head, *about, rect(0, 0, width, height, "paper"), *parts, "</svg>\n"])


def convert(picture) -> None:
    """Draws the results in the file of the first argument, and writes the picture to the file of the second one."""
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(picture(results))

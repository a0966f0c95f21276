#!/usr/bin/env python3
"""Draws what `shortlist_scale` measured: python3 bench/scale_plot.py scale.jsonl > docs/figures/shortlist-scale.svg

Three panels against the number of labels, all axes logarithmic: a training step, a document, peak memory; with a shortlist and without.
"""

import json
import math
import sys

PANELS = [("step_seconds", 1e3, "ms of a training step"), ("document_seconds", 1e3, "ms of a document"), ("peak_mb", 1.0, "peak MB")]
SERIES = [(True, "#0072b2", "shortlist"), (False, "#d55e00", "all labels")]
WIDTH, HEIGHT, LEFT, TOP, GAP = 230, 190, 56, 34, 66


def main(path):
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    labels = [row["labels"] for row in rows]
    low, high = math.log10(min(labels)), math.log10(max(labels))
    out = []
    for n, (key, factor, title) in enumerate(PANELS):
        values = [row[key] * factor for row in rows]
        bottom, top = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))

        def place(x, y, left=LEFT + n * (WIDTH + GAP), bottom=bottom, top=top):
            across = (math.log10(x) - low) / ((high - low) or 1)
            return left + across * WIDTH, TOP + HEIGHT * (1 - (math.log10(y) - bottom) / ((top - bottom) or 1))

        x0, y0 = place(10**low, 10**bottom)
        out.append(f'<text x="{x0 + WIDTH / 2:.0f}" y="{TOP - 14}" text-anchor="middle">{title}</text>')
        out.append(f'<path d="M{x0:.1f} {TOP}V{y0:.1f}H{x0 + WIDTH:.1f}" fill="none" stroke="#888"/>')
        for power in range(bottom, top + 1):
            _, y = place(10**low, 10**power)
            out.append(f'<path d="M{x0:.1f} {y:.1f}h{WIDTH}" stroke="#ddd"/><text x="{x0 - 6:.0f}" y="{y + 4:.1f}" text-anchor="end">{10**power:g}</text>')
        for power in range(math.ceil(low), math.floor(high) + 1):
            x, _ = place(10**power, 10**bottom)
            name = {3: "1k", 4: "10k", 5: "100k", 6: "1M"}.get(power, f"1e{power}")
            out.append(f'<text x="{x:.1f}" y="{y0 + 17:.1f}" text-anchor="middle">{name}</text>')
        for listed, colour, _ in SERIES:
            points = [place(row["labels"], row[key] * factor) for row in rows if (row["group_size"] > 0) == listed]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
            out.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in points)
    width, height = LEFT + 3 * WIDTH + 2 * GAP + 20, TOP + HEIGHT + 62
    for n, (_, colour, name) in enumerate(SERIES):
        x = LEFT + 110 * n
        out.append(f'<circle cx="{x}" cy="{height - 14}" r="4" fill="{colour}"/><text x="{x + 9}" y="{height - 10}">{name}</text>')
    out.append(f'<text x="{width - 20}" y="{height - 10}" text-anchor="end">labels</text>')
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>{"".join(out)}</svg>')


if __name__ == "__main__":
    main(sys.argv[1]) if len(sys.argv) == 2 else sys.exit(__doc__)

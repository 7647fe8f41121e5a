"""The page of Profile.to_html: one file without scripts or styles from elsewhere."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from rlx.profile_style import COLOURS, SCRIPT, STYLE

if TYPE_CHECKING:
    from rlx.profile import Profile, Span

ROWS = 60        # nodes in the table
MOST_SPANS = 20_000  # a browser draws no more boxes than this in comfort


def page(profile: Profile) -> str:
    """The whole page. It shows the run whose time is nearest to the median."""
    run = int(np.argmin(abs(profile.runs - profile.median)))
    name = os.path.basename(profile.model) or "model"
    spans = profile.spans(run)
    prims = _primitives(profile)
    width = float(profile.runs[run])
    body = [
        f"<header><h1>{escape(name)}</h1><p>{_subtitle(profile)}</p></header>",
        f'<section class="tiles">{"".join(_tiles(profile))}</section>',
        _shares(profile, prims),
        '<section><h2>Time line <small>run nearest to the median; hover for details</small>'
        '<span class="zoom"><button data-zoom="0.5">&minus;</button>'
        '<button data-zoom="2">+</button></span></h2><div class="scroll"><div class="wide">',
        _timeline(spans, prims, width), _axis(width), "</div></div></section>",
        _arena(profile, run, width),
        _table(profile, prims),
    ]
    return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>rlx profile of '
            f'{escape(name)}</title><meta name="viewport" content="width=device-width">'
            f'<style>{STYLE}</style><body>{"".join(body)}<div id="tip"></div>'
            f'<script>{SCRIPT}</script></body></html>\n')


def _primitives(profile: Profile) -> dict[str, tuple[float, str]]:
    """Primitive -> (seconds, colour), the longest first."""
    times: dict[str, float] = {}
    for step in profile.steps:
        times[step.prim] = times.get(step.prim, 0.0) + step.median
    order = sorted(times, key=lambda p: -times[p])
    return {p: (times[p], COLOURS[min(i, len(COLOURS) - 1)]) for i, p in enumerate(order)}


def _subtitle(profile: Profile) -> str:
    threads = f", {profile.threads} threads" if profile.device == "cpu" else ""
    return f"{profile.device}{threads} &middot; {len(profile.runs)} runs measured"


def _tiles(profile: Profile) -> Iterator[str]:
    inside = profile.in_steps
    best, worst = float(profile.runs.min()), float(profile.runs.max())
    facts = [("median run", _time(profile.median), f"{_time(best)} to {_time(worst)}"),
             ("in steps", _time(inside), f"{inside / profile.median:.1%} of the run"),
             ("outside steps", _time(max(profile.median - inside, 0.0)), "arrays in and out, walk"),
             ("steps", f"{sum(s.calls for s in profile.steps):,}", f"{len(profile.nodes)} nodes"),
             ("arena", _size(profile.arena_bytes), "memory of all intermediate values")]
    for title, value, note in facts:
        yield f"<div><h3>{title}</h3><b>{value}</b><small>{note}</small></div>"


def _shares(profile: Profile, prims: dict[str, tuple[float, str]]) -> str:
    total = sum(t for t, _ in prims.values()) or 1.0
    bars = "".join(
        f'<i style="width:{100 * t / total:.3f}%;background:{c}" {_tip(p, _time(t))}></i>'
        for p, (t, c) in prims.items())
    legend = "".join(f'<li><i style="background:{c}"></i>{escape(p)} '
                     f"<small>{t / total:.1%}</small></li>" for p, (t, c) in prims.items())
    return (f'<section><h2>By primitive</h2><div class="bar">{bars}</div>'
            f'<ul class="legend">{legend}</ul></section>')


def _timeline(spans: list[Span], prims: dict[str, tuple[float, str]], width: float) -> str:
    depths = max((s.depth for s in spans), default=0) + 1
    shown = sorted(spans, key=lambda s: s.begin - s.end)[:MOST_SPANS]
    boxes = []
    for s in shown:
        place = _place(s.begin, s.end, width) + f"top:{26 * s.depth}px;"
        if s.step is None:
            boxes.append(f'<i class="stage" style="{place}" '
                         f"{_tip(s.name, _time(s.end - s.begin))}>{escape(s.name)}</i>")
            continue
        lines = [f"{s.step.op}: {s.step.prim}, {s.step.rung}", _time(s.end - s.begin)]
        if s.step.also:
            lines.append("with " + ", ".join(s.step.also))
        boxes.append(f'<i style="{place}background:{prims[s.step.prim][1]}" '
                     f"{_tip(s.name, *lines)}>{escape(_short(s.name))}</i>")
    left_out = len(spans) - len(shown)
    note = f"<small>the {left_out} shortest are left out</small>" if left_out else ""
    return f'<div class="lane" style="height:{26 * depths}px">{"".join(boxes)}</div>{note}'


def _axis(width: float) -> str:
    step = 10 ** math.floor(math.log10(max(width, 1e-9) / 4))
    step *= next(m for m in (1, 2, 5, 10) if width / (step * m) <= 8)
    marks = "".join(f'<i style="left:{100 * k * step / width:.4f}%">{_time(k * step)}</i>'
                    for k in range(int(width / step) + 1))
    return f'<div class="axis">{marks}</div>'


def _arena(profile: Profile, run: int, width: float) -> str:
    blocks = profile.blocks(run)
    if not blocks:
        return ""
    height = max(max(b.offset + b.bytes for b in blocks), 1)
    boxes = []
    for b in blocks:
        name = " = ".join(v or "(unnamed)" for v in b.values) or f"workspace of {b.node}"
        kind = "work" if not b.values else "value"
        boxes.append(
            f'<i class="{kind}" style="{_place(b.begin, b.end, width)}'
            f'bottom:{100 * b.offset / height:.4f}%;height:{100 * b.bytes / height:.4f}%" '
            f'{_tip(name, f"{_size(b.bytes)} at {b.offset:,}")}></i>')
    curve, peak = _occupancy(blocks, width, height)
    return (
        f'<section><h2>Arena over time <small>what lies where, and how long; peak {_size(peak)} '
        f'in use of {_size(height)}; the line is the sum in use; hatched: workspaces</small></h2>'
        f'<div class="scroll"><div class="wide"><div class="lane arena">{"".join(boxes)}'
        f'<svg viewBox="0 0 1000 100" preserveAspectRatio="none"><polyline points="{curve}"/>'
        f"</svg></div>{_axis(width)}</div></div></section>")


def _occupancy(blocks: list, width: float, height: int) -> tuple[str, int]:
    """The bytes in use as points of a stepped line in a box of 1000 x 100, and their peak."""
    changes = sorted([(b.begin, b.bytes) for b in blocks] + [(b.end, -b.bytes) for b in blocks])
    points, live, peak = ["0,100"], 0, 0
    for at, change in changes:
        x = 1000 * at / width
        points.append(f"{x:.2f},{100 - 100 * live / height:.2f}")
        live += change
        peak = max(peak, live)
        points.append(f"{x:.2f},{100 - 100 * live / height:.2f}")
    return " ".join(points), peak


def _table(profile: Profile, prims: dict[str, tuple[float, str]]) -> str:
    most = profile.nodes[0].share if profile.nodes else 1.0
    rows = []
    for rank, n in enumerate(profile.nodes[:ROWS], 1):
        colour = prims[max(n.steps, key=lambda s: s.median).prim][1]
        how = ", ".join(dict.fromkeys(f"{s.prim} ({s.rung})" for s in n.steps))
        calls = max(s.calls for s in n.steps)
        also = f"<small>with {escape(', '.join(n.also))}</small>" if n.also else ""
        rows.append(
            f"<tr><td>{rank}<td>{escape(n.path + (n.name or '(unnamed)'))}{also}"
            f"<td>{escape(n.op)}<td>{escape(how)}<td>{calls if calls > 1 else ''}"
            f'<td class="n">{_time(n.median)}<td class="n">{n.share:.1%}'
            f'<td class="share"><i style="width:{100 * n.share / (most or 1):.2f}%;'
            f'background:{colour}"></i>')
    rest = f"<p><small>and {len(profile.nodes) - ROWS} more</small></p>" \
        if len(profile.nodes) > ROWS else ""
    return ('<section><h2>Slowest nodes</h2><table><thead><tr><th><th>ONNX node<th>op'
            "<th>runs as<th>calls<th>median<th>share<th></thead>"
            f"<tbody>{''.join(rows)}</tbody></table>{rest}</section>")


def _place(begin: float, end: float, width: float) -> str:
    return f"left:{100 * begin / width:.4f}%;width:{100 * max(end - begin, 0.0) / width:.4f}%;"


def _tip(title: str, *lines: str) -> str:
    return f'data-tip="{escape(chr(10).join((title or "(unnamed)", *lines)), quote=True)}"'


def _short(name: str) -> str:
    """The last parts of a path, which tell nodes apart."""
    return "/".join(name.split("/")[-2:])


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("&micro;s", 1e6)):
        if seconds * scale >= 1:
            return f"{seconds * scale:.3g} {unit}"
    return "0" if seconds == 0 else f"{seconds * 1e9:.0f} ns"


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"

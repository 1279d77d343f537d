"""The style of all pictures: light and dark, from 400 to 1600 pixels; no fonts and no images.

Widths inside a drawing are percentages and heights are pixels, so that text keeps its size on every
screen. Meaning is never in a colour alone: marks of a kind also have an outline or a hatching, and
each picture has a table.
"""

from __future__ import annotations

from typing import Final

_KINDS: Final = (
    *("read", "merged", "hides", "key", "statistics", "limit", "visibility", "constraint"),
    *("stored", "good", "weak", "bad", "edge", "paper"),
)
_LIGHT: Final = """
--paper:#fff;--ink:#1f2328;--quiet:#59636e;--rule:#d1d9e0;--band:#f3f5f7;--link:#0550ae;
--read:#1f6feb;--merged:#8250df;--hides:#bc4c00;--edge:#59636e;--key:#d0d7de;--statistics:#b7dfc4;
--limit:#f2dd9c;--visibility:#e8d5c4;--constraint:#f4c7d4;--stored:#57a6b8;--good:#1a7f37;
--weak:#9a6700;--bad:#cf222e;
"""
_DARK: Final = """
--paper:#14171a;--ink:#e6edf3;--quiet:#9da7b3;--rule:#3d444d;--band:#1d2126;--link:#79b8ff;
--read:#58a6ff;--merged:#bc8cff;--hides:#f0883e;--edge:#9da7b3;--key:#3b434c;--statistics:#23503a;
--limit:#5c4a16;--visibility:#4d3a2b;--constraint:#5b2638;--stored:#3f8ea1;--good:#56d364;
--weak:#e3b341;--bad:#ff7b72;
"""
_RULES: Final = """
&{color-scheme:light dark;LIGHTbackground:var(--paper);color:var(--ink);font:14px/1.45 system-ui,
sans-serif;padding:12px 16px;margin:0 0 16px;border:1px solid var(--rule);border-radius:6px;
container-type:inline-size;overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){&{DARK}}
[data-jp-theme-light=false] &,.vscode-dark &{DARK}
[data-jp-theme-light=true] &,.vscode-light &{LIGHT}
& h2{font-size:17px;margin:0 0 4px;color:inherit}
& h3{font-size:14px;margin:14px 0 4px;color:inherit}
& p{margin:2px 0 8px;color:var(--quiet)}
& code,& pre{font:12.5px/1.45 ui-monospace,monospace;white-space:pre-wrap;background:none;
color:inherit;padding:0;margin:0}
& a{color:var(--link)}
& :focus-visible{outline:2px solid var(--link);outline-offset:1px}
& svg{display:block;width:100%;overflow:visible}
& svg text{font-size:12px;fill:var(--quiet);unicode-bidi:isolate}
& .rule{stroke:var(--rule);stroke-width:1}
& .mark{stroke:var(--edge);stroke-width:1}
& a:hover .mark,& a:focus .mark{stroke:var(--ink);stroke-width:3}
& .hatch{stroke:var(--paper);stroke-width:2.2;fill:none}
KINDS
& .legend{display:flex;flex-wrap:wrap;gap:2px 14px;list-style:none;padding:0;margin:6px 0;
color:var(--ink)}
& .legend li{display:flex;align-items:center;gap:5px}
& .legend svg{width:14px;height:14px;flex:none}
& .panels{display:grid;gap:16px;grid-template-columns:minmax(0,1fr)}
& .scroll{overflow:auto;max-height:420px;border:1px solid var(--rule)}
& table{border-collapse:collapse;width:100%;margin:0;color:inherit;font-size:13px;
background:none;overflow-wrap:break-word}
& th,& td{text-align:left;vertical-align:top;padding:3px 8px;border:0;
border-bottom:1px solid var(--rule);background:none;color:inherit}
& thead th{position:sticky;top:0;background:var(--band)}
& td.number,& th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
& tr:target td,& tr:target th{background:var(--band);font-weight:600}
& td.bar{min-width:120px;width:38%}
& td.bar svg{outline:1px solid var(--rule)}
& thead th.number{white-space:normal}
& td.code{min-width:9em}
& td.code code{overflow-wrap:anywhere}
& ul.tree,& ul.tree ul{list-style:none;padding-left:16px;margin:2px 0;
border-left:1px solid var(--rule)}
& .tree li{margin:4px 0}
& .verdict{color:var(--quiet);font-size:12.5px}
& b.good{color:var(--good)}
& b.weak{color:var(--weak)}
& b.bad{color:var(--bad)}
& summary{cursor:pointer;margin:8px 0 4px}
& caption{text-align:left;color:var(--quiet);padding:2px 8px}
& .titled caption{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
& .facts{display:grid;gap:8px;margin:8px 0;padding:0;grid-template-columns:repeat(auto-fit,
minmax(150px,1fr))}
& .facts div{border:1px solid var(--rule);border-radius:5px;padding:6px 10px}
& .facts dt{color:var(--quiet);font-size:12.5px}
& .facts dd{margin:0;font-size:17px}
& .facts dd b,& .facts dd p{font-size:12.5px;margin:0}
& .nowrap{white-space:nowrap}
@container(max-width:640px){& .wide{display:none}
& td.bar{min-width:44px;width:auto}
& td.code{min-width:20em}
& .nowrap{white-space:normal;min-width:6em}
& table{font-size:12px}
& th,& td{padding:3px 5px}}
@container(min-width:900px){& .panels{grid-template-columns:repeat(2,minmax(0,1fr))}}
@media(forced-colors:active){& .mark{stroke:CanvasText}}
.rowsieve-page{margin:0;padding:12px;background:#fff;color:#1f2328}
.rowsieve-page h1{font:600 19px/1.4 system-ui,sans-serif;margin:4px 0 12px;overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){.rowsieve-page{background:#0d1012;color:#e6edf3}}
"""
"""LIGHT, DARK and KINDS stand for the texts above, & for the class of a picture."""

STYLE: Final = (
    _RULES.replace("LIGHT", _LIGHT)
    .replace("DARK", _DARK)
    .replace("KINDS", "".join(f"& .{kind}{{fill:var(--{kind})}}" for kind in _KINDS))
    .replace("&", ".rowsieve-picture")
    .replace("\n", "")
)

#include "superstep/page/stylesheet.h"

namespace superstep::page {

// The series colours differ in lightness as well as in hue, so that they can be told apart in grey and by
// most colour-blind readers; on paper the lines are dashed differently too.
const std::string_view stylesheet = R"css(
:root {
  --paper: #ffffff; --ink: #1c2024; --soft: #5b6670; --rule: #d5dade; --grid: #e6e9ec; --shade: #f4f6f8;
  --shadow: rgba(28, 32, 36, 0.28); --main: rgba(31, 111, 196, 0.12);
  --c0: #1f6fc4; --c1: #d9660b; --c2: #12805c; --c3: #a02c9c; --c4: #7f8893; --c5: #6b4a12; --c6: #e0529a;
  --c7: #0aa2b5;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --paper: #15181b; --ink: #e4e8eb; --soft: #9aa5ae; --rule: #3a4147; --grid: #272c31; --shade: #1e2226;
    --shadow: rgba(0, 0, 0, 0.85); --main: rgba(109, 177, 255, 0.16);
    --c0: #6db1ff; --c1: #ff9e4a; --c2: #4fd1a0; --c3: #d98bff; --c4: #aab3bc; --c5: #d6b26a; --c6: #ff8fc2;
    --c7: #5fdcec;
  }
}
* { box-sizing: border-box; }
html { color-scheme: light dark; -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 1.5rem 1rem 3rem; max-width: 96rem; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  overflow-wrap: anywhere;
}
h1, h2, h3, h4 { line-height: 1.25; margin: 2rem 0 0.6rem; break-after: avoid; }
h1 { font-size: 1.8rem; margin-top: 0; }
h2 { font-size: 1.35rem; padding-bottom: 0.2rem; border-bottom: 1px solid var(--rule); }
h3 { font-size: 1.1rem; }
h4 { font-size: 1rem; color: var(--soft); }
p { max-width: 46rem; margin: 0.6rem 0; }
.verdict { font-size: 1.15rem; font-weight: 600; max-width: none; }
pre, .table { overflow-x: auto; max-width: 100%; }
.table { width: fit-content; }
/* What is wider than its place is shaded at the side where more of it lies: covers of paper scroll with it. */
.table, figure.timeline {
  background:
    linear-gradient(to right, var(--paper) 40%, transparent) left / 2.4rem 100% no-repeat local,
    linear-gradient(to left, var(--paper) 40%, transparent) right / 2.4rem 100% no-repeat local,
    linear-gradient(to right, var(--shadow), transparent) left / 0.9rem 100% no-repeat scroll,
    linear-gradient(to left, var(--shadow), transparent) right / 0.9rem 100% no-repeat scroll;
}
pre { background: var(--shade); padding: 0.7rem 0.9rem; border-radius: 4px; font-size: 0.85rem; line-height: 1.4; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
table { border-collapse: collapse; margin: 0.8rem 0; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.8rem 0.3rem 0; text-align: left; vertical-align: top; overflow-wrap: normal; }
td { border-top: 1px solid var(--rule); }
th { font-weight: 600; border-bottom: 1px solid var(--soft); white-space: nowrap; }
tr.main td { font-weight: 700; background: var(--main); }
.facts td:first-child { color: var(--soft); }
.barlist { width: min(100%, 44rem); margin: 0.8rem 0; font-size: 0.92rem; }
.bar { display: grid; grid-template-columns: 12rem 1fr 8.5rem; gap: 0 0.7rem; align-items: center; padding: 0.1rem 0; }
.bar span { text-align: right; overflow-wrap: normal; }
.bar i { display: block; height: 1.05rem; width: max(1px, var(--length)); background: linear-gradient(to right, var(--c) var(--full), color-mix(in srgb, var(--c) 40%, var(--paper)) var(--full)); print-color-adjust: exact; }
.bar em { font-style: normal; font-weight: 400; white-space: nowrap; font-variant-numeric: tabular-nums; }
.confusion td, .confusion th { padding: 0.25rem 0.5rem; min-width: 2.4rem; }
.confusion .right { background: rgb(31 150 110 / calc(var(--part) * 0.75)); }
.confusion .wrong { background: rgb(217 102 11 / calc(var(--part) * 2)); }
th.number, td.number { text-align: right; white-space: nowrap; }
.row { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 0 1.5rem; }
.row > * { min-width: 0; }
.row > .table, .row > .column { flex: 0 1 auto; }
.row > .pictures { flex: 1 1 24rem; }
.row > .barlist, .row > .column > .barlist { width: 44rem; max-width: 100%; }
.row > figure.plot { flex: 0 0 auto; width: min(100%, 30rem); margin-right: 0; }
.column { max-width: 100%; }
.column > p { max-width: 42rem; }
.column > :first-child { margin-top: 0.8rem; }
figure { display: inline-block; vertical-align: top; margin: 0.8rem 1.2rem 0.8rem 0; max-width: 100%; break-inside: avoid; }
figure.plot { width: min(100%, 31rem); }
/* A timeline keeps its size on narrow screens and scrolls. */
figure.timeline { width: 100%; max-width: 82rem; overflow-x: auto; overflow-y: hidden; }
figure.timeline svg.plot { min-width: 44rem; }
figure.network { overflow: auto; max-height: 60rem; border: 1px solid var(--rule); border-radius: 4px; padding: 0.4rem; }
svg.network { display: block; }
svg.network path { fill: none; stroke: var(--soft); stroke-width: 1.2; }
svg.network rect { fill: var(--shade); stroke: var(--soft); }
svg.network text { font-size: 12px; text-anchor: middle; fill: var(--ink); font-family: inherit; }
svg.network text.soft { font-size: 10.5px; fill: var(--soft); }
svg.network text.on { fill: #1c2024; }
figcaption, .legend { color: var(--soft); font-size: 0.85rem; line-height: 1.35; }
figcaption { margin-top: 0.25rem; }
.pictures { margin: 0.8rem 0; }
.pictures figure { margin: 0 0.9rem 0.9rem 0; min-width: 5.5rem; }
.picture { position: relative; max-width: 100%; }
.picture img { display: block; width: 100%; height: auto; }
.picture img.enlarged { image-rendering: pixelated; }
.picture svg { position: absolute; inset: 0; width: 100%; height: 100%; overflow: visible; }
.pair { display: flex; gap: 4px; }
.moving { overflow: hidden; }
.moving img { display: block; max-width: none; animation: frames calc(var(--frames) * 0.2s) steps(var(--frames)) infinite; }
.moving:hover img { animation-play-state: paused; }
@keyframes frames { to { transform: translateX(-100%); } }
@media (prefers-reduced-motion: reduce) { .moving img { animation: none; } }
svg.inset { display: block; width: 100%; height: auto; outline: 1px solid var(--rule); }
svg.inset image { image-rendering: pixelated; }
svg.inset .scale { font-size: 12px; fill: #fff; font-family: inherit; paint-order: stroke; stroke: #000; stroke-opacity: 0.55; stroke-width: 3px; }
.frame { fill: none; stroke: #fff; stroke-width: 1.2; vector-effect: non-scaling-stroke; }
.mark { fill: none; stroke-linecap: round; vector-effect: non-scaling-stroke; stroke-width: 1.6; }
.halo { fill: none; stroke: #000; stroke-opacity: 0.55; stroke-linecap: round; vector-effect: non-scaling-stroke; stroke-width: 3.4; }
.legend span { display: inline-block; margin-right: 1.2rem; }
.legend .colors img { width: 7rem; height: 0.75rem; vertical-align: -0.08em; border-radius: 2px; }
.legend svg { width: 1.1em; height: 1.1em; vertical-align: -0.2em; margin-right: 0.35em; background: #5b6670; border-radius: 2px; }
svg.plot { display: block; width: 100%; height: auto; overflow: visible; }
svg.plot text { font-size: 13px; fill: var(--ink); font-family: inherit; }
svg.plot text.title { font-size: 14.5px; font-weight: 600; }
svg.plot text.note { fill: var(--soft); paint-order: stroke; stroke: var(--paper); stroke-width: 3px; stroke-linejoin: round; }
svg.plot text.block { font-size: 11px; fill: var(--paper); font-weight: 600; pointer-events: none; }
svg.plot path { fill: none; }
svg.plot .axis { stroke: var(--soft); }
svg.plot .grid { stroke: var(--grid); }
svg.plot .grid.minor { stroke-width: 0.5; }
svg.plot .reference { stroke: var(--soft); stroke-width: 1.4; stroke-dasharray: 6 4; }
.s0 { --c: var(--c0); } .s1 { --c: var(--c1); } .s2 { --c: var(--c2); } .s3 { --c: var(--c3); }
.s4 { --c: var(--c4); } .s5 { --c: var(--c5); } .s6 { --c: var(--c6); } .s7 { --c: var(--c7); }
svg.plot .line { stroke: var(--c); stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
svg.plot .points { stroke: var(--c); stroke-opacity: 0.8; }
svg.plot .bars { stroke: var(--c); fill: var(--c); fill-opacity: 0.35; }
svg.plot .area { fill: var(--c); fill-opacity: 0.85; }
svg.plot .band { fill: var(--c); fill-opacity: 0.2; }
th.sorts { cursor: pointer; }
th[aria-sort="ascending"]::after { content: " \25b4"; } th[aria-sort="descending"]::after { content: " \25be"; }
.filter { margin: 0.8rem 0 -0.4rem; color: var(--soft); font-size: 0.92rem; }
.filter input { font: inherit; color: inherit; background: var(--shade); border: 1px solid var(--rule); border-radius: 4px; padding: 0.15rem 0.5rem; width: 14rem; max-width: 100%; }
.tip { position: absolute; z-index: 1; pointer-events: none; background: var(--ink); color: var(--paper); padding: 0.15rem 0.5rem; border-radius: 4px; font-size: 0.85rem; max-width: 24rem; }
svg.plot[data-frame] { cursor: crosshair; touch-action: pan-y; }
svg.plot .dot { fill: none; stroke: var(--ink); stroke-width: 1.6; pointer-events: none; }
svg.plot .zoom { fill: var(--main); stroke: var(--soft); pointer-events: none; }
svg.plot.enlarged .marks path { vector-effect: non-scaling-stroke; }
svg.plot.enlarged .of-line { visibility: hidden; }
@media (max-width: 34rem) {
  body { padding: 1rem 0.8rem 2rem; }
  h1 { font-size: 1.5rem; }
  /* A table scrolls here: a last column of words need not be a tower. */
  .table td:last-child:not(.number) { min-width: 14rem; }
  .bar { grid-template-columns: 1fr auto; }
  .bar span { text-align: left; }
  .bar i { grid-column: 1 / 3; grid-row: 2; margin-bottom: 0.35rem; }
  svg.plot text { font-size: 15.5px; }
  svg.plot text.title { font-size: 17px; }
}
@media print {
  .filter, .tip { display: none; }
  figure.network { overflow: visible; max-height: none; }
  svg.network { max-width: 100%; height: auto; }
  .moving img { animation: none; }
  body { max-width: none; padding: 0; font-size: 10pt; }
  h1, h2, h3, h4 { margin-top: 1.2rem; }
  figure.plot { width: 48%; margin: 0.5rem 1% 0.5rem 0; }
  figure.timeline svg.plot { min-width: 0; }
  pre, .table { overflow: visible; white-space: pre-wrap; }
  .table, figure.timeline { background: none; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .line.s1 { stroke-dasharray: 8 4; } .line.s2 { stroke-dasharray: 2 4; } .line.s3 { stroke-dasharray: 8 4 2 4; }
  .line.s4 { stroke-dasharray: 12 5; } .line.s5 { stroke-dasharray: 4 3; } .line.s6 { stroke-dasharray: 12 4 2 4 2 4; }
  .line.s7 { stroke-dasharray: 1 3; }
}
)css";

}  // namespace superstep::page

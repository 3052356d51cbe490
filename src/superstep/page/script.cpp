#include "superstep/page/script.h"

namespace superstep::page {

// It reads what Page::table() and to_svg() write: the cells' own texts, and of a plot `data-x`, `data-y`
// (low, high, lin or log), `data-frame` (left, top, width, height) and each series' `data-label` and
// `data-values` (x, y, x, y ...). Sorting knows the units that the program prints, so that 900 us come before
// 1 ms.
const std::string_view script = R"js(
(() => {
'use strict';
const powers = {a: -18, f: -15, p: -12, n: -9, u: -6, '\u00b5': -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18};
const seconds = {min: 60, h: 3600, d: 86400};
const shown_rows = 12;  // a table of more has a field to filter it

// Of "1,234", "2.5 ms", "52.5 ksamples/s", "1:05 min" or "27 k to 100 k" the first number in its base unit; else NaN.
const bases = new RegExp('^(s|B|bit|W|Wh|J|Hz|V|A|m|g|eV|rad|FLOP|OP|samples|images|tokens|frames|steps|cycles|patterns|' +
                         'patches|items|requests|molecules|atoms|edges|rows|records|bytes)(/\\w+)?$');
function value_of(text) {
  const number = /^([-+]?(?:[\d,]*\.)?[\d,]*\d(?:e[-+]?\d+)?)(?::(\d\d))?(?::(\d\d))?\s*([^\s\d]*)/;
  const plain = text.trim().replace(/\u2212/g, '-'), found = plain.match(number);
  if (!found) return plain.startsWith('inf') ? Infinity : plain.startsWith('-inf') ? -Infinity : NaN;
  const value = Number(found[1].replace(/,/g, '')) + Number(found[2] ?? 0) / 60 + Number(found[3] ?? 0) / 3600;
  const unit = found[4];
  if (unit in seconds) return value * seconds[unit];
  if (!(unit[0] in powers)) return value;
  const base = unit.slice(1);
  return (base === '' ? unit !== 'm' : bases.test(base)) ? value * 10 ** powers[unit[0]] : value;
}

function compare(a, b) {
  const x = value_of(a), y = value_of(b);
  if (!isNaN(x) && !isNaN(y)) return x - y;
  if (isNaN(x) !== isNaN(y)) return isNaN(x) ? 1 : -1;
  return a.localeCompare(b, 'en', {numeric: true});
}

// Up, down, and back to the order of the page.
function sort(table, column, rows) {
  const heads = [...table.tHead.rows[0].cells], head = heads[column];
  const next = {none: 'ascending', ascending: 'descending', descending: 'none'}[head.ariaSort || 'none'];
  for (const each of heads) each.ariaSort = 'none';
  head.ariaSort = next;
  const text = row => row.cells[column] ? row.cells[column].textContent : '';
  const empty = row => text(row).trim() === '' || text(row).trim() === '-';
  const sorted = next === 'none' ? rows : [...rows].sort((a, b) =>
    empty(a) !== empty(b) ? (empty(a) ? 1 : -1) : (next === 'ascending' ? 1 : -1) * compare(text(a), text(b)));
  table.tBodies[0].append(...sorted);
}

function add_filter(table, rows) {
  const place = document.createElement('p'), field = document.createElement('input'), count = document.createElement('span');
  place.className = 'filter';
  field.type = 'search';
  field.placeholder = 'filter rows';
  field.ariaLabel = 'filter the rows of the table below';
  field.addEventListener('input', () => {
    const words = field.value.toLowerCase().split(/\s+/);
    let left = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      left += row.hidden ? 0 : 1;
    }
    count.textContent = field.value ? ` ${left} of ${rows.length} rows` : '';
  });
  place.append(field, count);
  table.closest('.table').before(place);
}

for (const table of document.querySelectorAll('.table:not(.facts) > table:not(.confusion)')) {
  if (!table.tHead || !table.tBodies[0]) continue;
  const rows = [...table.tBodies[0].rows];
  if (rows.length < 2) continue;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    head.tabIndex = 0;
    head.classList.add('sorts');
    head.title = 'sort by this column';
    head.addEventListener('click', () => sort(table, column, rows));
    head.addEventListener('keydown', event => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      sort(table, column, rows);
    });
  });
  if (rows.length > shown_rows) add_filter(table, rows);
}

const tip = document.createElement('div');
tip.className = 'tip';
tip.hidden = true;

class Axis {
  constructor(text) {
    const [low, high, kind] = text.split(' ');
    this.log = kind === 'log';
    this.whole = [Number(low), Number(high)];
    [this.low, this.high] = this.whole;
  }
  turn(value) { return this.log ? Math.log10(value) : value; }
  position(value) { return (this.turn(value) - this.turn(this.low)) / (this.turn(this.high) - this.turn(this.low)); }
  at(part) {
    const value = this.turn(this.low) + part * (this.turn(this.high) - this.turn(this.low));
    return this.log ? 10 ** value : value;
  }
  ticks() {
    if (this.log && this.high / this.low > 30) {
      const marks = [], first = Math.ceil(Math.log10(this.low) - 1e-9), last = Math.floor(Math.log10(this.high) + 1e-9);
      const step = Math.max(1, Math.ceil((last - first) / 6));
      for (let power = first; power <= last; power += step) marks.push(10 ** power);
      return marks;
    }
    const rough = (this.high - this.low) / 5, power = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].map(n => n * power).find(n => n >= rough * 0.999);
    const marks = [];
    for (let n = Math.ceil(this.low / step - 1e-9); n * step <= this.high + step * 1e-9; ++n) marks.push(n * step);
    return marks;
  }
}

const said = value => Number(value.toPrecision(5)).toLocaleString('en', {maximumSignificantDigits: 5, notation:
  value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6) ? 'scientific' : 'standard'});

class Drawing {
  constructor(svg) {
    this.svg = svg;
    this.x = new Axis(svg.dataset.x);
    this.y = new Axis(svg.dataset.y);
    [this.left, this.top, this.width, this.height] = svg.dataset.frame.split(' ').map(Number);
    this.marks = svg.querySelector('.marks');
    this.ticks = {x: svg.querySelector('.ticks-x'), y: svg.querySelector('.ticks-y')};
    this.grids = [...svg.querySelectorAll('.grid')];
    this.kept = [...this.grids, this.ticks.x, this.ticks.y].map(part => [part, part.outerHTML]);
    this.series = [...svg.querySelectorAll('[data-values]')].map(path => ({
      label: path.dataset.label, values: path.dataset.values.split(' ').map(Number)}));
    svg.addEventListener('pointermove', event => this.moved(event));
    svg.addEventListener('pointerleave', () => this.leave());
    svg.addEventListener('pointerdown', event => this.pressed(event));
    svg.addEventListener('pointerup', event => this.released(event));
    svg.addEventListener('dblclick', () => this.show(this.x.whole, this.y.whole));
  }
  // Made when they are first needed: a page that nobody points at stays as it is.
  get dot() { return this.own_dot ??= this.shape('circle', {r: 4, class: 'dot'}); }
  get box() { return this.own_box ??= this.shape('rect', {class: 'zoom'}); }
  shape(name, attributes) {
    const made = document.createElementNS(this.svg.namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    this.svg.append(made);
    return made;
  }
  place(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    const clamp = (value, low, size) => Math.min(low + size, Math.max(low, value));
    return {x: clamp(point.x, this.left, this.width), y: clamp(point.y, this.top, this.height)};
  }
  across(value) { return this.left + this.width * this.x.position(value); }
  down(value) { return this.top + this.height * (1 - this.y.position(value)); }
  // The value nearest to a place of the drawing, within the frame.
  nearest(at) {
    let best = null, distance = 40 * 40;
    for (const series of this.series)
      for (let i = 0; i + 1 < series.values.length; i += 2) {
        const x = this.across(series.values[i]), y = this.down(series.values[i + 1]);
        const d = (x - at.x) ** 2 + (y - at.y) ** 2;
        if (!(d < distance) || x < this.left - 1 || x > this.left + this.width + 1 || y < this.top - 1 || y > this.top + this.height + 1) continue;
        distance = d;
        best = {x, y, label: series.label, values: [series.values[i], series.values[i + 1]]};
      }
    return best;
  }
  moved(event) {
    const at = this.place(event);
    if (this.from) return this.stretch(at);
    const best = this.nearest(at);
    if (!best) return this.leave();
    this.dot.setAttribute('cx', best.x);
    this.dot.setAttribute('cy', best.y);
    this.dot.setAttribute('visibility', 'visible');
    tip.textContent = `${best.label ? best.label + ': ' : ''}${said(best.values[0])}, ${said(best.values[1])}`;
    tip.hidden = false;
    tip.style.left = `${Math.min(event.pageX + 14, document.documentElement.scrollWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${event.pageY + 16}px`;
  }
  leave() {
    tip.hidden = true;
    if (this.own_dot) this.own_dot.setAttribute('visibility', 'hidden');
  }
  pressed(event) {
    if (event.pointerType === 'touch' || event.button !== 0) return;
    event.preventDefault();
    this.svg.setPointerCapture(event.pointerId);
    this.from = this.place(event);
  }
  stretch(to) {
    const from = this.from;
    for (const [key, value] of Object.entries({x: Math.min(from.x, to.x), y: Math.min(from.y, to.y),
                                               width: Math.abs(to.x - from.x), height: Math.abs(to.y - from.y)}))
      this.box.setAttribute(key, value);
    this.box.setAttribute('visibility', 'visible');
  }
  released(event) {
    const from = this.from, to = this.place(event);
    this.from = null;
    if (this.own_box) this.own_box.setAttribute('visibility', 'hidden');
    if (!from || Math.abs(to.x - from.x) < 8 || Math.abs(to.y - from.y) < 8) return;
    const x = [from.x, to.x].map(v => this.x.at((v - this.left) / this.width)).sort((a, b) => a - b);
    const y = [from.y, to.y].map(v => this.y.at(1 - (v - this.top) / this.height)).sort((a, b) => a - b);
    this.show(x, y);
  }
  // The same drawing with other ends of its axes; with its own ones as it was.
  show(x, y) {
    this.leave();
    [this.x.low, this.x.high] = this.x.whole;
    [this.y.low, this.y.high] = this.y.whole;
    const own = x === this.x.whole && y === this.y.whole;
    const left = this.x.position(x[0]), right = this.x.position(x[1]);
    const foot = this.y.position(y[0]), head = this.y.position(y[1]);
    const sx = 1 / (right - left), sy = 1 / (head - foot);
    if (!(sx < 1e6) || !(sy < 1e6)) return;
    const tx = this.left - sx * (this.left + left * this.width);
    const ty = this.top - sy * (this.top + (1 - head) * this.height);
    this.marks.setAttribute('transform', own ? '' : `matrix(${sx} 0 0 ${sy} ${tx} ${ty})`);
    this.svg.classList.toggle('enlarged', !own);
    [this.x.low, this.x.high] = x;
    [this.y.low, this.y.high] = y;
    if (own) return this.restore();
    this.clip();
    this.redraw();
  }
  restore() {
    for (const [part, html] of this.kept) {
      const holder = document.createElementNS(this.svg.namespaceURI, 'g');
      holder.innerHTML = html;
      part.setAttribute('d', holder.firstChild.getAttribute('d') || '');
      part.innerHTML = holder.firstChild.innerHTML;
    }
  }
  clip() {
    if (this.clipped) return;
    this.clipped = true;
    const id = `clip${++Drawing.count}`, clip = this.shape('clipPath', {id});
    const rect = this.shape('rect', {x: this.left, y: this.top, width: this.width, height: this.height});
    clip.append(rect);
    const holder = this.shape('g', {'clip-path': `url(#${id})`});
    this.marks.before(holder);
    holder.append(this.marks);
  }
  redraw() {
    const foot = this.top + this.height, right = this.left + this.width;
    let grid = '';
    for (const name of ['x', 'y']) {
      const group = this.ticks[name];
      group.replaceChildren();
      for (const value of this[name].ticks()) {
        const at = name === 'x' ? this.across(value) : this.down(value);
        grid += name === 'x' ? `M${at} ${this.top}V${foot}` : `M${this.left} ${at}H${right}`;
        const text = this.shape('text', name === 'x' ? {x: at, y: foot + 21, 'text-anchor': 'middle'}
                                                     : {x: this.left - 8, y: at + 4.5, 'text-anchor': 'end'});
        text.textContent = said(value);
        group.append(text);
      }
    }
    this.grids.forEach((part, i) => part.setAttribute('d', i === 0 ? grid : ''));
  }
}
Drawing.count = 0;

document.body.append(tip);
for (const svg of document.querySelectorAll('svg.plot[data-frame]')) new Drawing(svg);
})();
)js";

}  // namespace superstep::page

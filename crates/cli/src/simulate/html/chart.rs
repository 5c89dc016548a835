//! A chart as SVG: two axes with lines, areas or bars.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::axis::{Axis, number};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 408.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 186.0;

/// The number of colours; one more is for everything else.
pub const COLOURS: usize = 7;

/// A chart under construction.
pub struct Chart<'a> {
    x: &'a Axis,
    y: &'a Axis,
    unit: &'a str,
    label: String,
    marks: Vec<Markup>,
}

impl<'a> Chart<'a> {
    /// An empty chart; `unit` follows the values of the vertical axis in tooltips.
    pub fn new(label: String, x: &'a Axis, y: &'a Axis, unit: &'a str) -> Self {
        Self { x, y, unit, label, marks: Vec::new() }
    }

    /// A line through points from left to right.
    pub fn line(&mut self, colour: usize, name: &str, points: &[(f64, f64)]) {
        let places: Vec<(f64, f64)> = points.iter().map(|point| self.place(*point)).collect();
        let mut path = String::new();
        for (index, place) in places.iter().enumerate() {
            let is_level = |neighbour: Option<&(f64, f64)>| neighbour.is_some_and(|neighbour| neighbour.1 == place.1);
            // A point between two of the same height adds nothing to the line.
            if index == 0 || !is_level(places.get(index - 1)) || !is_level(places.get(index + 1)) {
                line_to(&mut path, *place);
            }
        }
        self.marks.push(html! { path class={ "line c" (colour) } data-name=(name) d=(path) {} });
    }

    /// The area between two lines: each point is (x, lower, upper).
    pub fn area(&mut self, colour: usize, name: &str, points: &[(f64, f64, f64)]) {
        let mut path = String::new();
        for &(x, _, upper) in points {
            line_to(&mut path, self.place((x, upper)));
        }
        for &(x, lower, _) in points.iter().rev() {
            line_to(&mut path, self.place((x, lower)));
        }
        path.push('Z');
        self.marks.push(html! { path class={ "area c" (colour) } data-name=(name) data-area d=(path) {} });
    }

    /// A bar over a range of each axis, with a tooltip.
    pub fn bar(&mut self, colour: usize, x: (f64, f64), y: (f64, f64), tooltip: &str) {
        let ((left, low), (right, high)) = (self.place((x.0, y.0)), self.place((x.1, y.1)));
        let (width, height) = (number((right - left - 0.5).max(1.0)), number((low - high).max(1.0)));
        self.marks.push(html! {
            rect class={ "bar c" (colour) } x=(number(left)) y=(number(high)) width=(width) height=(height) {
                title { (tooltip) }
            }
        });
    }

    /// The finished SVG.
    pub fn finish(self) -> Markup {
        let Self { x, y, unit, label, marks } = self;
        let (middle, half) = (number((LEFT + RIGHT) / 2.0), number((TOP + BOTTOM) / 2.0));
        html! {
            svg.chart
                viewBox=(format!("0 0 {WIDTH} {HEIGHT}"))
                role="img"
                aria-label=(label)
                data-log[x.logarithmic]
                data-unit=(unit)
                data-x=(format!("{LEFT} {RIGHT} {} {}", x.from, x.to))
                data-y=(format!("{BOTTOM} {TOP} {} {}", y.from, y.to))
            {
                @for (tick, text) in &y.ticks {
                    @let height = number(BOTTOM - y.part(*tick) * (BOTTOM - TOP));
                    path.grid d=(format!("M{LEFT} {height}H{RIGHT}")) {}
                    text.end x=(number(LEFT - 5.0)) y=(height) dy=".35em" { (text) }
                }
                @for mark in marks { (mark) }
                path.axis d=(format!("M{LEFT} {TOP}V{BOTTOM}H{RIGHT}")) {}
                @for (tick, text) in &x.ticks {
                    @let across = number(LEFT + x.part(*tick) * (RIGHT - LEFT));
                    path.axis d=(format!("M{across} {BOTTOM}v4")) {}
                    text.middle x=(across) y=(number(BOTTOM + 17.0)) { (text) }
                }
                text.middle.what x=(middle) y=(number(HEIGHT - 8.0)) { (x.title) }
                text.middle.what transform=(format!("translate(12 {half}) rotate(-90)")) { (y.title) }
            }
        }
    }

    fn place(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (LEFT + self.x.part(x) * (RIGHT - LEFT), BOTTOM - self.y.part(y) * (BOTTOM - TOP))
    }
}

/// The symbol beside a name in a legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A line.
    Line,
    /// A patch.
    Patch,
}

/// A legend: each name beside its colour.
pub fn legend<'n>(key: Key, names: impl Iterator<Item = &'n str>) -> Markup {
    html! {
        ul.legend {
            @for (colour, name) in names.enumerate() {
                li {
                    svg.key viewBox="0 0 28 10" aria-hidden="true" {
                        @match key {
                            Key::Line => path class={ "line c" (colour) } d="M0 5H28" {},
                            Key::Patch => rect class={ "c" (colour) } width="28" height="10" {},
                        }
                    }
                    (name)
                }
            }
        }
    }
}

fn line_to(path: &mut String, (x, y): (f64, f64)) {
    let letter = if path.is_empty() { 'M' } else { 'L' };
    let _ = write!(path, "{letter}{} {}", number(x), number(y));
}

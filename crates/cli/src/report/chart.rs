//! A chart as SVG: two axes, and lines, areas or bars between them.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::axis::{Axis, number};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 408.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 186.0;

/// How many colours there are; one more is for all the rest.
pub const COLOURS: usize = 7;

/// A chart that is being drawn.
pub struct Chart<'a> {
    x: &'a Axis,
    y: &'a Axis,
    unit: &'a str,
    label: String,
    marks: Vec<Markup>,
}

impl<'a> Chart<'a> {
    /// An empty chart; the unit is what follows a number of the upright axis.
    pub fn new(label: String, x: &'a Axis, y: &'a Axis, unit: &'a str) -> Self {
        Self { x, y, unit, label, marks: Vec::new() }
    }

    /// A line through points from left to right.
    pub fn line(&mut self, colour: usize, name: &str, points: &[(f64, f64)]) {
        let places: Vec<(f64, f64)> = points.iter().map(|point| self.place(*point)).collect();
        let mut path = String::new();
        for (at, place) in places.iter().enumerate() {
            let level = |other: Option<&(f64, f64)>| other.is_some_and(|other| other.1 == place.1);
            let between = at > 0 && level(places.get(at - 1)) && level(places.get(at + 1));
            if !between {
                step_to(&mut path, *place);
            }
        }
        self.marks.push(html! { path class={ "line c" (colour) } data-name=(name) d=(path) {} });
    }

    /// The room between two lines: each point has a lower and an upper end.
    pub fn area(&mut self, colour: usize, name: &str, points: &[(f64, f64, f64)]) {
        let mut path = String::new();
        for &(x, _, upper) in points {
            step_to(&mut path, self.place((x, upper)));
        }
        for &(x, lower, _) in points.iter().rev() {
            step_to(&mut path, self.place((x, lower)));
        }
        path.push('Z');
        self.marks.push(html! { path class={ "area c" (colour) } data-name=(name) data-area d=(path) {} });
    }

    /// A bar from one number to another, and what it says when it is pointed at.
    pub fn bar(&mut self, colour: usize, across: (f64, f64), up: (f64, f64), says: &str) {
        let ((left, low), (right, high)) = (self.place((across.0, up.0)), self.place((across.1, up.1)));
        let (width, height) = (number((right - left - 0.5).max(1.0)), number((low - high).max(1.0)));
        self.marks.push(html! {
            rect class={ "bar c" (colour) } x=(number(left)) y=(number(high)) width=(width) height=(height) {
                title { (says) }
            }
        });
    }

    /// The drawing.
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
                @for (at, text) in &y.ticks {
                    @let height = number(BOTTOM - y.part(*at) * (BOTTOM - TOP));
                    path.grid d=(format!("M{LEFT} {height}H{RIGHT}")) {}
                    text.end x=(number(LEFT - 5.0)) y=(height) dy=".35em" { (text) }
                }
                @for mark in marks { (mark) }
                path.axis d=(format!("M{LEFT} {TOP}V{BOTTOM}H{RIGHT}")) {}
                @for (at, text) in &x.ticks {
                    @let across = number(LEFT + x.part(*at) * (RIGHT - LEFT));
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

/// What a legend shows beside a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// A line.
    Line,
    /// A patch.
    Patch,
}

/// The names of what a chart shows, each beside its colour.
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

fn step_to(path: &mut String, (x, y): (f64, f64)) {
    let letter = if path.is_empty() { 'M' } else { 'L' };
    let _ = write!(path, "{letter}{} {}", number(x), number(y));
}

//! Axes of charts, with ticks at round numbers.

use super::super::statistics::unit;

const SECOND: f64 = 1_000_000.0;
/// The possible distances of the ticks of a time axis, in seconds.
const STEPS: [i64; 28] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000,
    604_800, 864_000, 1_728_000, 2_592_000, 5_184_000, 8_640_000, 17_280_000, 34_560_000,
];
/// The possible ticks of a logarithmic axis of waiting times: seconds and label.
const WAITS: [(f64, &str); 9] = [
    (1.0, "≤1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3_600.0, "1 h"),
    (36_000.0, "10 h"),
    (345_600.0, "4 d"),
    (2_592_000.0, "30 d"),
    (31_536_000.0, "365 d"),
];

/// An axis of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The value at the start.
    pub from: f64,
    /// The value at the end.
    pub to: f64,
    /// The values of the ticks with their labels.
    pub ticks: Vec<(f64, String)>,
    /// The quantity and its unit.
    pub title: String,
    /// Whether the values are logarithms to base 10.
    pub logarithmic: bool,
}

impl Axis {
    /// The time since the start, up to this many seconds.
    pub fn time(seconds: f64) -> Self {
        let step = step_of(seconds, 6.0);
        let (unit, name) = match step {
            0..60 => (1, "seconds"),
            60..3_600 => (60, "minutes"),
            3_600..86_400 => (3_600, "hours"),
            _ => (86_400, "days"),
        };
        let ticks = (0..).map(|tick| tick * step).take_while(|tick| *tick as f64 <= seconds);
        Self {
            from: 0.0,
            to: seconds.max(1.0),
            ticks: ticks.map(|tick| (tick as f64, number(tick as f64 / unit as f64))).collect(),
            title: format!("{name} since the start"),
            logarithmic: false,
        }
    }

    /// Whole numbers from 0 to a round number that is at least `max`.
    pub fn count(max: f64, title: &str) -> Self {
        let min_step = (max / 4.0).max(1.0);
        let mut step = 1.0;
        for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
            if step >= min_step {
                break;
            }
            step *= factor;
        }
        let n = (max / step).ceil().max(1.0);
        let ticks = (0..=n as usize).map(|tick| (tick as f64 * step, number(tick as f64 * step)));
        Self { from: 0.0, to: n * step, ticks: ticks.collect(), title: title.to_owned(), logarithmic: false }
    }

    /// From 0 % to 100 %.
    pub fn percent(title: &str) -> Self {
        let ticks = [0.0, 25.0, 50.0, 75.0, 100.0].map(|tick| (tick, number(tick))).into();
        Self { from: 0.0, to: 100.0, ticks, title: title.to_owned(), logarithmic: false }
    }

    /// A logarithmic axis from one second to at least this many.
    pub fn waiting(seconds: f64, title: &str) -> Self {
        let to = WAITS.iter().map(|(wait, _)| *wait).find(|wait| *wait >= seconds).unwrap_or(seconds).max(10.0);
        let ticks = WAITS.iter().filter(|(wait, _)| *wait <= to).map(|(wait, text)| (wait.log10(), (*text).to_owned()));
        Self { from: 0.0, to: to.log10(), ticks: ticks.collect(), title: title.to_owned(), logarithmic: true }
    }

    /// The position of a value on the axis, from 0 to 1.
    pub fn part(&self, number: f64) -> f64 {
        ((number - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }
}

/// The shortest round time, in seconds, that divides a time into at most `max_steps` steps.
pub fn step_of(seconds: f64, max_steps: f64) -> i64 {
    STEPS.into_iter().find(|step| seconds / *step as f64 <= max_steps).unwrap_or_else(|| {
        let years = (seconds / max_steps / 31_536_000.0).ceil().max(1.0);
        years as i64 * 31_536_000
    })
}

/// Seconds from microseconds.
pub fn seconds(micros: i64) -> f64 {
    micros as f64 / SECOND
}

/// A number with one decimal, unless the decimal is 0.
pub fn number(number: f64) -> String {
    let text = format!("{number:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// The name of a resource on an axis.
pub fn resource_name(resource: &str) -> String {
    match unit(resource) {
        "GPU" => "GPUs".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        for (seconds, last, unit) in [(50.0, "50", "seconds"), (3_600.0, "60", "minutes"), (86_400.0, "24", "hours")] {
            let axis = Axis::time(seconds);
            assert_eq!(axis.ticks.last().expect("an axis has ticks").1, last, "{axis:?}");
            assert!(axis.title.starts_with(unit), "{axis:?}");
        }
        assert_eq!(Axis::time(149.0 * 86_400.0).ticks.len(), 5);
    }

    #[test]
    fn count_axis_includes_the_maximum() {
        for (max, to) in [(0.0, 1.0), (3.0, 3.0), (7.0, 8.0), (41.0, 60.0), (950.0, 1_000.0)] {
            let axis = Axis::count(max, "pods");
            assert_eq!(axis.to, to, "{max}: {axis:?}");
            assert!(axis.ticks.len() <= 6, "{axis:?}");
        }
    }

    #[test]
    fn waiting_axis_includes_every_wait() {
        for wait in [0.0, 1.0, 59.0, 86_400.0, 1e9] {
            let axis = Axis::waiting(wait, "waiting time");
            assert!(wait.max(1.0).log10() <= axis.to && axis.ticks.len() >= 2, "{wait}: {axis:?}");
        }
    }
}

//! Axes with round numbers on them.

const SECOND: f64 = 1_000_000.0;
/// How far apart the ticks of a time axis may be, in seconds.
const STEPS: [i64; 28] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800, 432_000,
    604_800, 864_000, 1_728_000, 2_592_000, 5_184_000, 8_640_000, 17_280_000, 34_560_000,
];
/// What a waiting time is measured against, from one to the next about as much longer.
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

/// A direction of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// Numbers, and what is written at them.
    pub ticks: Vec<(f64, String)>,
    /// What it is, and in which unit.
    pub title: String,
    /// Whether its numbers are logarithms to base 10.
    pub logarithmic: bool,
}

impl Axis {
    /// So many seconds from the start on.
    pub fn time(seconds: f64) -> Self {
        let step = step_of(seconds, 6.0);
        let (unit, word) = match step {
            0..60 => (1, "seconds"),
            60..3_600 => (60, "minutes"),
            3_600..86_400 => (3_600, "hours"),
            _ => (86_400, "days"),
        };
        let ticks = (0..).map(|at| at * step).take_while(|at| *at as f64 <= seconds);
        Self {
            from: 0.0,
            to: seconds.max(1.0),
            ticks: ticks.map(|at| (at as f64, number(at as f64 / unit as f64))).collect(),
            title: format!("{word} since the start"),
            logarithmic: false,
        }
    }

    /// From 0 to a round number that is at least so much, in whole numbers.
    pub fn count(most: f64, title: &str) -> Self {
        let least = (most / 4.0).max(1.0);
        let mut step = 1.0;
        for factor in [2.0, 2.5, 2.0].into_iter().cycle() {
            if step >= least {
                break;
            }
            step *= factor;
        }
        let n = (most / step).ceil().max(1.0);
        let ticks = (0..=n as usize).map(|at| (at as f64 * step, number(at as f64 * step)));
        Self { from: 0.0, to: n * step, ticks: ticks.collect(), title: title.to_owned(), logarithmic: false }
    }

    /// From 0 to 100 in a hundred.
    pub fn percent(title: &str) -> Self {
        let ticks = [0.0, 25.0, 50.0, 75.0, 100.0].map(|at| (at, number(at))).into();
        Self { from: 0.0, to: 100.0, ticks, title: title.to_owned(), logarithmic: false }
    }

    /// From a second to at least so many, each tick about ten times the one before.
    pub fn waiting(seconds: f64, title: &str) -> Self {
        let to = WAITS.iter().map(|(at, _)| *at).find(|at| *at >= seconds).unwrap_or(seconds).max(10.0);
        let ticks = WAITS.iter().filter(|(at, _)| *at <= to).map(|(at, text)| (at.log10(), (*text).to_owned()));
        Self { from: 0.0, to: to.log10(), ticks: ticks.collect(), title: title.to_owned(), logarithmic: true }
    }

    /// Where a number lies, from 0 to 1.
    pub fn part(&self, number: f64) -> f64 {
        ((number - self.from) / (self.to - self.from)).clamp(0.0, 1.0)
    }
}

/// The shortest round time that goes into so many seconds at most so often.
pub fn step_of(seconds: f64, often: f64) -> i64 {
    STEPS.into_iter().find(|step| seconds / *step as f64 <= often).unwrap_or_else(|| {
        let years = (seconds / often / 31_536_000.0).ceil().max(1.0);
        years as i64 * 31_536_000
    })
}

/// Seconds from microseconds.
pub fn seconds(micros: i64) -> f64 {
    micros as f64 / SECOND
}

/// A number with one decimal, or none where that would be 0.
pub fn number(number: f64) -> String {
    let text = format!("{number:.1}");
    match text.strip_suffix(".0") {
        Some("-0") => "0".to_owned(),
        Some(whole) => whole.to_owned(),
        None => text,
    }
}

/// What a resource is called on an axis.
pub fn resource_words(resource: &str) -> String {
    match resource {
        "nvidia.com/gpu" => "GPUs".to_owned(),
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
    fn a_count_reaches_the_most() {
        for (most, to) in [(0.0, 1.0), (3.0, 3.0), (7.0, 8.0), (41.0, 60.0), (950.0, 1_000.0)] {
            let axis = Axis::count(most, "pods");
            assert_eq!(axis.to, to, "{most}: {axis:?}");
            assert!(axis.ticks.len() <= 6, "{axis:?}");
        }
    }

    #[test]
    fn a_wait_of_any_length_is_on_the_axis() {
        for wait in [0.0, 1.0, 59.0, 86_400.0, 1e9] {
            let axis = Axis::waiting(wait, "waiting time");
            assert!(wait.max(1.0).log10() <= axis.to && axis.ticks.len() >= 2, "{wait}: {axis:?}");
        }
    }
}

//! The rows of the comparison: for each statistic its direction and the value of each policy.

use std::cmp::Ordering;

use jiff::SignedDuration;
use reprieve_simulator::summary::{Percentiles, Summary};

use crate::render::format_duration;

/// Whether a higher or a lower value is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    Higher,
    Lower,
}

impl Better {
    pub fn word(self) -> &'static str {
        match self {
            Self::Higher => "higher",
            Self::Lower => "lower",
        }
    }

    fn compare(self, a: Key, b: Key) -> Ordering {
        let order = a.partial_cmp(&b).unwrap_or(Ordering::Equal);
        match self {
            Self::Higher => order,
            Self::Lower => order.reverse(),
        }
    }
}

/// A statistic of all policies.
pub struct StatisticsRow {
    /// What it is; indented if it is a part of the row above.
    pub title: String,
    pub better: Better,
    pub values: Vec<StatisticsValue>,
}

/// The value of one policy.
pub struct StatisticsValue {
    pub text: String,
    /// Whether no policy has a better value, and another policy has a different one.
    pub is_best: bool,
}

/// By what values are compared: numbers in the order of their importance.
type Key = [f64; 3];

/// The value of one policy before the best is known; without a key it is unknown.
type Value = (String, Option<Key>);

/// The rows of the comparison.
pub fn statistics(summaries: &[&Summary]) -> Vec<StatisticsRow> {
    use Better::{Higher, Lower};
    let mut rows = Vec::new();
    let mut row = |title: &str, better: Better, of: &dyn Fn(&Summary) -> Value| {
        let values: Vec<Value> = summaries.iter().map(|summary| of(summary)).collect();
        rows.push(StatisticsRow { title: title.to_owned(), better, values: mark_best(values, better) });
    };
    let unit = summaries.first().map_or("", |summary| unit(&summary.resource));
    row("jobs finished", Higher, &|summary| {
        (format!("{} of {}", summary.finished, summary.jobs), one(summary.finished as f64))
    });
    row("jobs never started", Lower, &|summary| number(summary.never_started));
    row("pods evicted", Lower, &|summary| number(summary.evictions));
    row("  second-order (caused by a returning victim)", Lower, &|summary| number(summary.second_order_evictions));
    row("    foreseen / unforeseen", Lower, &|summary| {
        let (foreseen, others) = (summary.foreseen_second_order_evictions, summary.unforeseen_second_order_evictions);
        (format!("{foreseen} / {others}"), Some([others as f64, foreseen as f64, 0.0]))
    });
    row("gangs partly evicted", Lower, &|summary| number(summary.partial_gangs));
    row(&format!("{unit}-hours of finished work (goodput)"), Higher, &|summary| hours(summary.goodput_hours));
    row(&format!("{unit}-hours lost"), Lower, &|summary| hours(summary.lost_hours));
    row("  idle in incomplete gangs", Lower, &|summary| hours(summary.idle_hours));
    row(&format!("{unit} utilization (mean)"), Higher, &|summary| {
        (format!("{:.1}%", summary.utilisation * 100.0), one(summary.utilisation))
    });
    row("fairness across queues (Jain's index)", Higher, &|summary| match summary.fairness {
        Some(index) => (format!("{index:.3}"), one(index)),
        None => ("-".to_owned(), None),
    });
    if let Some(first) = summaries.first() {
        for waiting in &first.waiting {
            row(&format!("wait at priority {}", waiting.priority), Lower, &|summary| {
                let found = summary.waiting.iter().find(|level| level.priority == waiting.priority);
                percentiles(found.map(|found| found.seconds))
            });
        }
        if first.gang_start.is_some() {
            row("wait of gangs", Lower, &|summary| percentiles(summary.gang_start));
        }
    }
    rows
}

/// The name of a resource as a unit: `GPU`, or `cpu`.
pub fn unit(resource: &str) -> &'static str {
    if resource == "cpu" { "cpu" } else { "GPU" }
}

fn one(number: f64) -> Option<Key> {
    Some([number, 0.0, 0.0])
}

fn number(count: usize) -> Value {
    (count.to_string(), one(count as f64))
}

fn hours(hours: f64) -> Value {
    (format!("{hours:.1}"), one(hours))
}

/// Waits are compared by their 95th percentile first.
fn percentiles(percentiles: Option<Percentiles>) -> Value {
    match percentiles {
        Some(Percentiles { p50, p95, p99 }) => {
            let text = [p50, p95, p99].map(|seconds| format_duration(SignedDuration::from_secs_f64(seconds)));
            (text.join(" / "), Some([p95, p99, p50]))
        }
        None => ("-".to_owned(), None),
    }
}

fn mark_best(values: Vec<Value>, better: Better) -> Vec<StatisticsValue> {
    let known = values.iter().filter_map(|(text, key)| Some((text, (*key)?)));
    let best = known.max_by(|(_, a), (_, b)| better.compare(*a, *b)).map(|(text, _)| text.clone());
    let differs = values.iter().any(|(text, key)| key.is_some() && Some(text) != best.as_ref());
    let mark = |(text, _): Value| StatisticsValue { is_best: differs && Some(&text) == best.as_ref(), text };
    values.into_iter().map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_value_is_marked_unless_all_are_equal() {
        let best = |better: Better, values: &[Option<f64>]| -> Vec<bool> {
            let value = |value: &Option<f64>| (format!("{value:?}"), value.and_then(one));
            mark_best(values.iter().map(value).collect(), better).iter().map(|value| value.is_best).collect()
        };
        assert_eq!(best(Better::Higher, &[Some(1.0), Some(3.0), Some(3.0)]), [false, true, true]);
        assert_eq!(best(Better::Lower, &[Some(1.0), Some(3.0), None]), [true, false, false]);
        assert_eq!(best(Better::Lower, &[Some(1.0), Some(1.0)]), [false, false]);
        assert_eq!(best(Better::Lower, &[Some(1.0), None]), [false, false], "nothing to compare with");
    }
}

//! Lost work in GPU-hours. `plan`, `compare` and `simulate` compute it with [`lost_micros`], so that a GPU-hour means the same everywhere.

use std::fmt;
use std::str::FromStr;

use reprieve_api::Pod;
use reprieve_engine::Timestamp;
use reprieve_loader::time::parse_time;
use reprieve_loader::{Amounts, requests, timestamp};
use serde::Serialize;

/// The annotation of a pod that says when its work was last saved (RFC 3339). No decision reads it.
pub const LAST_CHECKPOINT: &str = "reprieve.dev/last-checkpoint";

const MICROS_PER_HOUR: f64 = 3_600_000_000.0;

/// The work that the eviction of some pods loses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LostWork {
    /// The GPUs of the pods.
    pub gpus: i64,
    /// GPUs times hours since the last checkpoint, or else since the start; `None` if neither time is known for a pod with GPUs.
    pub gpu_hours: Option<f64>,
}

impl fmt::Display for LostWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.gpu_hours {
            Some(hours) => write!(f, "{hours:.1} GPU-hours"),
            None => f.write_str("– GPU-hours"),
        }
    }
}

/// The resources that count as GPUs: their names match one of these patterns, in which `*` stands for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuResources(Vec<String>);

impl Default for GpuResources {
    fn default() -> Self {
        Self(vec!["*/gpu*".to_owned()])
    }
}

impl FromStr for GpuResources {
    type Err = String;

    /// Patterns separated by commas.
    fn from_str(text: &str) -> Result<Self, String> {
        let patterns: Vec<String> = text.split(',').map(|pattern| pattern.trim().to_owned()).collect();
        match patterns.iter().any(String::is_empty) {
            true => Err("write resources separated by commas, for example nvidia.com/gpu,*/gpu*".to_owned()),
            false => Ok(Self(patterns)),
        }
    }
}

impl fmt::Display for GpuResources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

impl GpuResources {
    /// Whether a resource counts as GPUs.
    pub fn includes(&self, resource: &str) -> bool {
        self.0.iter().any(|pattern| matches(pattern, resource))
    }

    /// The number of GPUs among these amounts.
    pub fn of(&self, amounts: &Amounts) -> i64 {
        let gpus = amounts.iter().filter(|(resource, _)| self.includes(resource));
        gpus.fold(0, |sum, (_, amount)| sum.saturating_add(*amount))
    }

    /// The work that the eviction of these pods loses. A pod whose requests cannot be read is never evicted.
    pub fn lost_work<'p>(&self, pods: impl Iterator<Item = &'p Pod>, now: Timestamp) -> LostWork {
        let mut lost = LostWork { gpus: 0, gpu_hours: Some(0.0) };
        for pod in pods {
            let gpus = requests::requests(pod).map_or(0, |amounts| self.of(&amounts));
            if gpus > 0 {
                let micros = lost_micros(started(pod), last_checkpoint(pod), now);
                let hours = micros.map(|micros| gpus as f64 * micros as f64 / MICROS_PER_HOUR);
                lost.gpus = lost.gpus.saturating_add(gpus);
                lost.gpu_hours = lost.gpu_hours.zip(hours).map(|(sum, hours)| sum + hours);
            }
        }
        lost
    }
}

/// How long a pod that is evicted now has worked since its work was last saved, or else since it started, in microseconds; `None` if neither
/// time is known.
pub fn lost_micros(started: Option<Timestamp>, checkpoint: Option<Timestamp>, now: Timestamp) -> Option<i64> {
    let saved = started.max(checkpoint)?;
    Some(now.0.saturating_sub(saved.0).max(0))
}

fn started(pod: &Pod) -> Option<Timestamp> {
    pod.status.as_ref()?.start_time.as_ref().map(|time| timestamp(time.0))
}

/// The last checkpoint; a value that is not a time counts as none.
fn last_checkpoint(pod: &Pod) -> Option<Timestamp> {
    let text = pod.metadata.annotations.as_ref()?.get(LAST_CHECKPOINT)?;
    parse_time(text).ok().map(timestamp)
}

fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, rest)) => text
            .strip_prefix(before)
            .is_some_and(|text| (0..=text.len()).filter_map(|start| text.get(start..)).any(|text| matches(rest, text))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pattern_selects_the_resources_that_count_as_gpus() {
        let default = GpuResources::default();
        for (resource, counts) in
            [("nvidia.com/gpu", true), ("amd.com/gpu", true), ("nvidia.com/gpu.shared", true), ("cpu", false)]
        {
            assert_eq!(default.includes(resource), counts, "{resource}");
        }
        let chosen: GpuResources = "nvidia.com/gpu, habana.ai/*".parse().expect("two patterns");
        assert!(chosen.includes("habana.ai/gaudi") && !chosen.includes("nvidia.com/gpu.shared"));
        assert!("a,,b".parse::<GpuResources>().is_err());
    }

    #[test]
    fn lost_work_counts_from_the_checkpoint_or_else_from_the_start() {
        let pod = |gpus: u32, started: Option<&str>, checkpoint: Option<&str>| -> Pod {
            let pod = json!({
                "metadata": {"annotations": checkpoint.map(|time| json!({LAST_CHECKPOINT: time}))},
                "spec": {"containers": [{"name": "c", "resources": {"requests": {"nvidia.com/gpu": gpus.to_string()}}}]},
                "status": {"startTime": started},
            });
            serde_json::from_value(pod).expect("a pod")
        };
        let now = timestamp("2026-01-01T10:00:00Z".parse().expect("a time"));
        let start = Some("2026-01-01T06:00:00Z");
        for (pod, hours) in [
            (pod(2, start, None), Some(8.0)),
            (pod(2, start, Some("2026-01-01T09:00:00Z")), Some(2.0)),
            (pod(2, None, Some("2026-01-01T09:00:00Z")), Some(2.0)),
            (pod(2, start, Some("2026-01-01T05:00:00Z")), Some(8.0)), // of an earlier start
            (pod(2, start, Some("2026-01-01T11:00:00Z")), Some(0.0)),
            (pod(2, start, Some("soon")), Some(8.0)),
            (pod(2, None, None), None),
            (pod(0, None, None), Some(0.0)),
        ] {
            let lost = GpuResources::default().lost_work([&pod].into_iter(), now);
            assert_eq!(lost.gpu_hours, hours, "{pod:?}");
        }
        let texts = [Some(1.5), None].map(|gpu_hours| LostWork { gpus: 2, gpu_hours }.to_string());
        assert_eq!(texts, ["1.5 GPU-hours", "– GPU-hours"]);
    }
}

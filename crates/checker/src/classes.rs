//! The PriorityClasses: priority, preemption policy, toleration and opt-out of a pod.

use std::collections::BTreeMap;

use jiff::Timestamp;
use reprieve_api::ObjectSet;

use crate::selector::Labels;

const MINIMUM: &str = "preemption-toleration.scheduling.x-k8s.io/minimum-preemptable-priority";
const SECONDS: &str = "preemption-toleration.scheduling.x-k8s.io/toleration-seconds";
const ALLOW_PREEMPTION: &str = "yunikorn.apache.org/allow-preemption";

/// The classes by name, with the two that every cluster has.
#[derive(Clone)]
pub struct Classes {
    by_name: BTreeMap<String, Class>,
    global_default: Option<Class>,
}

#[derive(Clone, Default)]
struct Class {
    value: i64,
    preemption_policy: Option<String>,
    annotations: Labels,
}

impl Classes {
    /// Reads the classes.
    pub fn read(objects: &ObjectSet) -> Self {
        let built_in = |value| Class { value, ..Class::default() };
        let mut by_name = BTreeMap::from([
            ("system-node-critical".to_owned(), built_in(2_000_001_000)),
            ("system-cluster-critical".to_owned(), built_in(2_000_000_000)),
        ]);
        let mut global_default = None;
        for class in objects.priority_classes.iter().map(|sourced| &sourced.object) {
            let read = Class {
                value: i64::from(class.value.unwrap_or_default()),
                preemption_policy: class.preemption_policy.clone(),
                annotations: class.metadata.annotations.clone().unwrap_or_default(),
            };
            if class.global_default == Some(true) {
                global_default = Some(read.clone());
            }
            by_name.insert(class.metadata.name.clone().unwrap_or_default(), read);
        }
        Self { by_name, global_default }
    }

    /// The value of a class.
    pub fn value(&self, class: &str) -> Option<i64> {
        self.by_name.get(class).map(|class| class.value)
    }

    /// docs/rules/kubernetes-pods.md#p19: the priority that is set, else the value of the class, else that of the global default, else 0.
    pub fn priority(&self, set: Option<i32>, class: Option<&str>) -> i64 {
        set.map_or_else(|| self.class_or_default(class).map_or(0, |class| class.value), i64::from)
    }

    /// Whether a pod may preempt: by its own policy, else by that of its class, as the admission plugin would set it.
    pub fn preempts(&self, own: Option<&str>, class: Option<&str>) -> bool {
        own.or_else(|| self.class_or_default(class)?.preemption_policy.as_deref()) != Some("Never")
    }

    /// Whether a class is named that is not defined.
    pub fn is_undefined(&self, class: Option<&str>) -> bool {
        named(class).is_some_and(|class| !self.by_name.contains_key(class))
    }

    /// docs/rules/toleration.md#t10: whether the class opted out of preemption.
    pub fn opted_out(&self, class: Option<&str>) -> bool {
        self.of(class).and_then(|class| class.annotations.get(ALLOW_PREEMPTION)).is_some_and(|value| value == "false")
    }

    /// docs/rules/toleration.md#t2, docs/rules/toleration.md#t4 to docs/rules/toleration.md#t7: whether a bound pod of the class, scheduled
    /// at this time, tolerates a preemptor of this priority now.
    pub fn tolerates(&self, class: Option<&str>, scheduled: Option<Timestamp>, preemptor: i64, now: Timestamp) -> bool {
        let Some(class) = self.of(class) else { return false };
        let (minimum, seconds) = (class.annotations.get(MINIMUM), class.annotations.get(SECONDS));
        if minimum.is_none() && seconds.is_none() {
            return false;
        }
        let minimum = minimum.map_or(Ok(class.value + 1), |text| text.parse::<i32>().map(i64::from));
        let seconds = seconds.map_or(Ok(0), |text| text.parse::<i64>());
        let (Ok(minimum), Ok(seconds)) = (minimum, seconds) else { return false };
        if preemptor >= minimum || seconds == 0 {
            return false;
        }
        let Some(scheduled) = scheduled else { return true };
        seconds < 0 || scheduled.as_nanosecond() + i128::from(seconds) * 1_000_000_000 > now.as_nanosecond()
    }

    fn of(&self, class: Option<&str>) -> Option<&Class> {
        self.by_name.get(named(class)?)
    }

    fn class_or_default(&self, class: Option<&str>) -> Option<&Class> {
        match named(class) {
            Some(class) => self.by_name.get(class),
            None => self.global_default.as_ref(),
        }
    }
}

fn named(class: Option<&str>) -> Option<&str> {
    class.filter(|class| !class.is_empty())
}

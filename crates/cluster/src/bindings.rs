//! Bindings that the watch has not confirmed yet. The response to a binding has no resource version, so the event loop reports a binding as
//! finished only when the request succeeded and the watch shows the pod on its node.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use reprieve_api::{Kind, NamespacedName, Object};
use reprieve_scheduler::{ActionId, ActionResult, Event, Target};

/// How long the watch may take to show a binding that succeeded.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(30);

/// The profile and the action.
pub type ActionKey = (usize, ActionId);

#[derive(Default)]
pub struct PendingBindings {
    by_pod: BTreeMap<NamespacedName, PendingBinding>,
    pods: BTreeMap<ActionKey, NamespacedName>,
    /// Bindings that succeeded before the watch showed them, oldest first. Some are confirmed since.
    unconfirmed: VecDeque<(Instant, ActionKey)>,
}

struct PendingBinding {
    key: ActionKey,
    uid: String,
    succeeded: bool,
    seen_in: Option<u64>,
}

impl PendingBindings {
    /// Adds a binding whose request is about to be sent.
    pub fn begin(&mut self, key: ActionKey, pod: &Target) {
        self.pods.insert(key, pod.name.clone());
        let binding = PendingBinding { key, uid: pod.uid.clone(), succeeded: false, seen_in: None };
        if let Some(before) = self.by_pod.insert(pod.name.clone(), binding) {
            self.pods.remove(&before.key);
        }
    }

    /// Takes the response to any action. Returns the result to report, which is `None` for a binding that the watch has not shown yet.
    pub fn answered(&mut self, key: ActionKey, result: ActionResult, now: Instant) -> Option<ActionResult> {
        let Some(binding) = self.pods.get(&key).and_then(|pod| self.by_pod.get_mut(pod)) else {
            return Some(result);
        };
        // A dry run reports the version `u64::MAX`, which the watch never shows.
        let succeeded = matches!(result, ActionResult::Ok { version } if version != u64::MAX);
        if !succeeded {
            self.end(key);
            return Some(result);
        }
        let Some(version) = binding.seen_in else {
            binding.succeeded = true;
            self.unconfirmed.push_back((now, key));
            return None;
        };
        self.end(key);
        Some(ActionResult::Ok { version })
    }

    /// The bindings that an event confirms, or ends because their pod is deleted.
    pub fn confirmed_by(&mut self, event: &Event) -> Vec<(ActionKey, ActionResult)> {
        if self.by_pod.is_empty() {
            return Vec::new();
        }
        match event {
            Event::Upserted(object) => self.confirmed_on(object).into_iter().collect(),
            Event::Listed { objects, .. } => objects.iter().filter_map(|object| self.confirmed_on(object)).collect(),
            Event::Deleted { key, version } if key.kind == Kind::Pod => {
                let Some(binding) = self.by_pod.remove(&key.name) else { return Vec::new() };
                self.pods.remove(&binding.key);
                let result = (binding.key, ActionResult::Ok { version: *version });
                Vec::from_iter(binding.succeeded.then_some(result))
            }
            Event::Deleted { .. } | Event::Unreadable { .. } | Event::TimerFired | Event::ActionCompleted { .. } => {
                Vec::new()
            }
        }
    }

    fn confirmed_on(&mut self, object: &Object) -> Option<(ActionKey, ActionResult)> {
        let Object::Pod(pod) = object else { return None };
        let binding = self.by_pod.get_mut(&NamespacedName::from_meta(&pod.metadata))?;
        if pod.node_name.is_none() || object.uid() != binding.uid {
            return None;
        }
        let (key, version) = (binding.key, object.version());
        binding.seen_in = Some(version);
        binding.succeeded.then(|| {
            self.end(key);
            (key, ActionResult::Ok { version })
        })
    }

    /// Removes the bindings that succeeded and that the watch did not show within the timeout.
    pub fn take_overdue(&mut self, now: Instant) -> Vec<(ActionKey, NamespacedName)> {
        let mut overdue = Vec::new();
        while let Some((since, key)) = self.unconfirmed.front().copied() {
            if self.pods.contains_key(&key) {
                if now.duration_since(since) <= CONFIRMATION_TIMEOUT {
                    break;
                }
                overdue.extend(self.end(key).map(|pod| (key, pod)));
            }
            self.unconfirmed.pop_front();
        }
        overdue
    }

    fn end(&mut self, key: ActionKey) -> Option<NamespacedName> {
        let pod = self.pods.remove(&key)?;
        self.by_pod.remove(&pod);
        Some(pod)
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
    use reprieve_api::kinds::ObjectKey;
    use reprieve_api::pod::Pod;

    use super::*;

    const KEY: ActionKey = (0, ActionId(7));
    const OK: ActionResult = ActionResult::Ok { version: 0 };

    fn name() -> NamespacedName {
        NamespacedName::new("default", "a")
    }

    fn begun() -> PendingBindings {
        let mut bindings = PendingBindings::default();
        bindings.begin(KEY, &Target { name: name(), uid: "u".to_owned(), version: 1 });
        bindings
    }

    fn pod(node: Option<&str>, uid: &str, version: u64) -> Event {
        Event::Upserted(Object::from(Pod {
            metadata: ObjectMeta {
                name: Some("a".to_owned()),
                namespace: Some("default".to_owned()),
                uid: Some(uid.to_owned()),
                resource_version: Some(version.to_string()),
                ..ObjectMeta::default()
            },
            node_name: node.map(str::to_owned),
            ..Pod::default()
        }))
    }

    fn version(results: &[(ActionKey, ActionResult)]) -> Option<u64> {
        match results {
            [(KEY, ActionResult::Ok { version })] => Some(*version),
            _ => None,
        }
    }

    #[test]
    fn binding_is_finished_when_it_is_answered_and_seen() {
        let mut bindings = begun();
        assert!(bindings.answered(KEY, OK, Instant::now()).is_none());
        assert!(bindings.confirmed_by(&pod(None, "u", 2)).is_empty(), "the pod has no node yet");
        assert!(bindings.confirmed_by(&pod(Some("n"), "another", 3)).is_empty(), "another pod of that name");
        assert_eq!(version(&bindings.confirmed_by(&pod(Some("n"), "u", 4))), Some(4));

        let mut bindings = begun();
        assert!(bindings.confirmed_by(&pod(Some("n"), "u", 4)).is_empty());
        assert!(matches!(bindings.answered(KEY, OK, Instant::now()), Some(ActionResult::Ok { version: 4 })));
    }

    #[test]
    fn failed_binding_is_finished_at_once() {
        let mut bindings = begun();
        assert!(matches!(bindings.answered(KEY, ActionResult::Conflict, Instant::now()), Some(ActionResult::Conflict)));
        assert!(bindings.confirmed_by(&pod(Some("n"), "u", 4)).is_empty());
    }

    #[test]
    fn binding_of_a_deleted_pod_is_finished() {
        let mut bindings = begun();
        assert!(bindings.answered(KEY, OK, Instant::now()).is_none());
        let deleted = Event::Deleted { key: ObjectKey::new(Kind::Pod, name()), version: 9 };
        assert_eq!(version(&bindings.confirmed_by(&deleted)), Some(9));
    }

    #[test]
    fn binding_that_is_never_seen_is_overdue_once() {
        let (mut bindings, began) = (begun(), Instant::now());
        assert!(bindings.take_overdue(began + CONFIRMATION_TIMEOUT * 9).is_empty(), "the binding is not answered yet");
        assert!(bindings.answered(KEY, OK, began).is_none());
        assert!(bindings.take_overdue(began + CONFIRMATION_TIMEOUT).is_empty());
        let later = began + CONFIRMATION_TIMEOUT + Duration::from_secs(1);
        assert_eq!(bindings.take_overdue(later), [(KEY, name())]);
        assert!(bindings.take_overdue(later).is_empty());
    }
}

//! Bindings that were asked for and are yet to be seen: the API does not say in which version a binding shows.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use reprieve_api::kinds::{Kind, Object};
use reprieve_api::meta::NamespacedName;
use reprieve_scheduler::action::{ActionId, Target};
use reprieve_scheduler::event::{ActionResult, Event};

/// How long it may take until a pod that was bound is seen to be.
const SEEN_WITHIN: Duration = Duration::from_secs(30);

/// An action, and whose it is.
pub type ActionKey = (usize, ActionId);

/// All of them.
#[derive(Default)]
pub struct PendingBindings {
    by_pod: BTreeMap<NamespacedName, PendingBinding>,
    pods: BTreeMap<ActionKey, NamespacedName>,
    /// Those that worked before they were seen, the oldest first. Some have been seen since.
    worked: VecDeque<(Instant, ActionKey)>,
}

struct PendingBinding {
    asked: ActionKey,
    uid: String,
    worked: bool,
    seen_in: Option<u64>,
}

impl PendingBindings {
    /// A binding is asked for.
    pub fn begin(&mut self, asked: ActionKey, pod: &Target) {
        self.pods.insert(asked, pod.name.clone());
        let binding = PendingBinding { asked, uid: pod.uid.clone(), worked: false, seen_in: None };
        if let Some(before) = self.by_pod.insert(pod.name.clone(), binding) {
            self.pods.remove(&before.asked);
        }
    }

    /// An action was answered: its result, unless it is a binding that is yet to be seen.
    pub fn answered(&mut self, asked: ActionKey, result: ActionResult, now: Instant) -> Option<ActionResult> {
        let Some(binding) = self.pods.get(&asked).and_then(|pod| self.by_pod.get_mut(pod)) else {
            return Some(result);
        };
        let shows = matches!(result, ActionResult::Ok { version } if version != u64::MAX);
        match binding.seen_in {
            None if shows => {
                binding.worked = true;
                self.worked.push_back((now, asked));
                None
            }
            Some(version) if shows => {
                self.end(asked);
                Some(ActionResult::Ok { version })
            }
            _ => {
                self.end(asked);
                Some(result)
            }
        }
    }

    /// Those that an event shows to have been made, or to be about a pod that is gone.
    pub fn shown_by(&mut self, event: &Event) -> Vec<(ActionKey, ActionResult)> {
        if self.by_pod.is_empty() {
            return Vec::new();
        }
        match event {
            Event::Upserted(object) => self.shown_on(object).into_iter().collect(),
            Event::Listed { objects, .. } => objects.iter().filter_map(|object| self.shown_on(object)).collect(),
            Event::Deleted { key, version } if key.kind == Kind::Pod => {
                let Some(PendingBinding { asked, worked, .. }) = self.by_pod.remove(&key.name) else {
                    return Vec::new();
                };
                self.pods.remove(&asked);
                if worked { vec![(asked, ActionResult::Ok { version: *version })] } else { Vec::new() }
            }
            Event::Deleted { .. } | Event::TimerFired | Event::ActionCompleted { .. } => Vec::new(),
        }
    }

    fn shown_on(&mut self, object: &Object) -> Option<(ActionKey, ActionResult)> {
        let Object::Pod(pod) = object else { return None };
        let binding = self.by_pod.get_mut(&NamespacedName::from_meta(&pod.metadata))?;
        let bound = pod.node_name.is_some();
        if !bound || object.uid() != binding.uid {
            return None;
        }
        let (asked, version) = (binding.asked, object.version());
        binding.seen_in = Some(version);
        binding.worked.then(|| {
            self.end(asked);
            (asked, ActionResult::Ok { version })
        })
    }

    /// Those that worked, and have not been seen for too long.
    pub fn late(&mut self, now: Instant) -> Vec<(ActionKey, NamespacedName)> {
        let mut late = Vec::new();
        while let Some((since, asked)) = self.worked.front().copied() {
            if self.pods.contains_key(&asked) {
                if now.duration_since(since) <= SEEN_WITHIN {
                    break;
                }
                late.extend(self.end(asked).map(|pod| (asked, pod)));
            }
            self.worked.pop_front();
        }
        late
    }

    fn end(&mut self, asked: ActionKey) -> Option<NamespacedName> {
        let pod = self.pods.remove(&asked)?;
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

    const ASKED: ActionKey = (0, ActionId(7));
    const OK: ActionResult = ActionResult::Ok { version: 0 };

    fn name() -> NamespacedName {
        NamespacedName::new("default", "a")
    }

    fn begun() -> PendingBindings {
        let mut bindings = PendingBindings::default();
        bindings.begin(ASKED, &Target { name: name(), uid: "u".to_owned(), version: 1 });
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
            [(ASKED, ActionResult::Ok { version })] => Some(*version),
            _ => None,
        }
    }

    #[test]
    fn it_is_done_when_it_is_both_answered_and_seen() {
        let mut bindings = begun();
        assert!(bindings.answered(ASKED, OK, Instant::now()).is_none());
        assert!(bindings.shown_by(&pod(None, "u", 2)).is_empty(), "it has no node yet");
        assert!(bindings.shown_by(&pod(Some("n"), "another", 3)).is_empty(), "it is another of that name");
        assert_eq!(version(&bindings.shown_by(&pod(Some("n"), "u", 4))), Some(4));

        let mut bindings = begun();
        assert!(bindings.shown_by(&pod(Some("n"), "u", 4)).is_empty());
        assert!(matches!(bindings.answered(ASKED, OK, Instant::now()), Some(ActionResult::Ok { version: 4 })));
    }

    #[test]
    fn what_did_not_work_is_not_waited_for() {
        let mut bindings = begun();
        assert!(matches!(
            bindings.answered(ASKED, ActionResult::Conflict, Instant::now()),
            Some(ActionResult::Conflict)
        ));
        assert!(bindings.shown_by(&pod(Some("n"), "u", 4)).is_empty());
    }

    #[test]
    fn a_pod_that_went_is_not_waited_for() {
        let mut bindings = begun();
        assert!(bindings.answered(ASKED, OK, Instant::now()).is_none());
        let gone = Event::Deleted { key: ObjectKey::new(Kind::Pod, name()), version: 9 };
        assert_eq!(version(&bindings.shown_by(&gone)), Some(9));
    }

    #[test]
    fn one_that_is_never_seen_is_given_up_once() {
        let (mut bindings, began) = (begun(), Instant::now());
        assert!(bindings.late(began + SEEN_WITHIN * 9).is_empty(), "it was not answered yet");
        assert!(bindings.answered(ASKED, OK, began).is_none());
        assert!(bindings.late(began + SEEN_WITHIN).is_empty());
        let later = began + SEEN_WITHIN + Duration::from_secs(1);
        assert_eq!(bindings.late(later), [(ASKED, name())]);
        assert!(bindings.late(later).is_empty());
    }
}

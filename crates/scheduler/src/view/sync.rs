//! The start of a scheduler: it decides nothing before all kinds are listed. Because actions of an earlier scheduler may still take effect, it
//! then waits for a moment and lists the kinds again that schedulers change.

use std::collections::BTreeSet;

use reprieve_api::Kind;
use reprieve_engine::Timestamp;

use crate::action::Action;

/// How long the actions of an earlier scheduler may take effect after a start.
const STARTUP_SETTLE_SECONDS: i64 = 1;

pub(crate) struct SyncState {
    /// The kinds that were not listed yet.
    unlisted: BTreeSet<Kind>,
    phase: StartupPhase,
}

#[derive(PartialEq, Eq)]
enum StartupPhase {
    Started,
    /// Waits until this time.
    Waiting(Timestamp),
    /// Waits for the second list of these kinds.
    Relisting(BTreeSet<Kind>),
    Synced,
}

impl SyncState {
    pub fn new() -> Self {
        Self { unlisted: Kind::ALL.iter().copied().collect(), phase: StartupPhase::Started }
    }

    pub fn is_synced(&self) -> bool {
        self.unlisted.is_empty() && self.phase == StartupPhase::Synced
    }

    pub fn listed(&mut self, kind: Kind) {
        self.unlisted.remove(&kind);
        if let StartupPhase::Relisting(kinds) = &mut self.phase {
            kinds.remove(&kind);
            if kinds.is_empty() {
                self.phase = StartupPhase::Synced;
            }
        }
    }

    /// The next actions of the start. `changed` are the kinds that a scheduler changes.
    pub fn next(&mut self, changed: &[Kind], now: Timestamp) -> Vec<Action> {
        match self.phase {
            _ if !self.unlisted.is_empty() => Vec::new(),
            StartupPhase::Started => {
                let until = now.plus_seconds(STARTUP_SETTLE_SECONDS);
                self.phase = StartupPhase::Waiting(until);
                vec![Action::WakeAt { at: until }]
            }
            StartupPhase::Waiting(until) if now >= until => {
                self.phase = StartupPhase::Relisting(changed.iter().copied().collect());
                changed.iter().map(|&kind| Action::Relist { kind }).collect()
            }
            StartupPhase::Waiting(_) | StartupPhase::Relisting(_) | StartupPhase::Synced => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_that_a_scheduler_changes_are_listed_twice() {
        let mut sync = SyncState::new();
        let (started, later) = (Timestamp(0), Timestamp(0).plus_seconds(STARTUP_SETTLE_SECONDS));
        assert_eq!(sync.next(&[Kind::Pod], started), [], "nothing was listed");
        for &kind in Kind::ALL {
            assert!(!sync.is_synced());
            sync.listed(kind);
        }
        assert_eq!(sync.next(&[Kind::Pod], started), [Action::WakeAt { at: later }]);
        assert_eq!(sync.next(&[Kind::Pod], started), []);
        assert_eq!(sync.next(&[Kind::Pod], later), [Action::Relist { kind: Kind::Pod }]);
        assert!(!sync.is_synced());
        sync.listed(Kind::Pod);
        assert!(sync.is_synced());
    }
}

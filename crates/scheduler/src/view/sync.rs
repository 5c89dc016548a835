//! Whether enough of the cluster was listed to decide.

use std::collections::BTreeSet;

use reprieve_api::kinds::Kind;
use reprieve_engine::Timestamp;

use crate::action::Action;

/// How long a scheduler that was just started waits for what another one may have asked for to be done and seen.
const STARTUP_SETTLE_SECONDS: i64 = 1;

/// What was listed since the scheduler was started.
pub(crate) struct SyncState {
    /// Kinds that were not listed yet: nothing is decided before.
    unlisted: BTreeSet<Kind>,
    settling: StartupPhase,
}

/// What another scheduler asked for before this one was started may still be done. So it lets a moment pass, and lists
/// again what it changes itself.
#[derive(PartialEq, Eq)]
enum StartupPhase {
    Started,
    Quiet(Timestamp),
    Listing(BTreeSet<Kind>),
    Settled,
}

impl SyncState {
    pub fn new() -> Self {
        Self { unlisted: Kind::ALL.iter().copied().collect(), settling: StartupPhase::Started }
    }

    /// Whether everything that decisions are made on is known.
    pub fn is_synced(&self) -> bool {
        self.unlisted.is_empty() && self.settling == StartupPhase::Settled
    }

    /// A kind was listed.
    pub fn listed(&mut self, kind: Kind) {
        self.unlisted.remove(&kind);
        if let StartupPhase::Listing(kinds) = &mut self.settling {
            kinds.remove(&kind);
            if kinds.is_empty() {
                self.settling = StartupPhase::Settled;
            }
        }
    }

    /// What is to be asked for before anything can be decided. `changed` are the kinds that a scheduler changes.
    pub fn next(&mut self, changed: &[Kind], now: Timestamp) -> Vec<Action> {
        match self.settling {
            _ if !self.unlisted.is_empty() => Vec::new(),
            StartupPhase::Started => {
                let until = now.plus_seconds(STARTUP_SETTLE_SECONDS);
                self.settling = StartupPhase::Quiet(until);
                vec![Action::WakeAt { at: until }]
            }
            StartupPhase::Quiet(until) if now >= until => {
                self.settling = StartupPhase::Listing(changed.iter().copied().collect());
                changed.iter().map(|&kind| Action::Relist { kind }).collect()
            }
            StartupPhase::Quiet(_) | StartupPhase::Listing(_) | StartupPhase::Settled => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_scheduler_changes_is_listed_twice_with_a_pause_between() {
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

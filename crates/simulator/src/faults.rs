//! The kinds of injected faults and their rates, in occurrences per million opportunities.

use serde::{Deserialize, Serialize};

/// Defines the types from the table below. Each row: description, field of the rate, kind, and the rate in [`Faults::SOME`].
macro_rules! faults {
    ($(#[doc = $doc:literal] $field:ident $kind:ident $some:literal;)+) => {
        /// The rate of each kind of fault, per million opportunities.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields, default)]
        pub struct Faults {
            $(#[doc = $doc] pub $field: u32,)+
        }

        /// A kind of fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Fault {
            $(#[doc = $doc] $kind,)+
        }

        impl Fault {
            /// All kinds of faults.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];
        }

        impl Faults {
            /// A low rate of every kind.
            pub const SOME: Self = Self { $($field: $some,)+ };

            /// The rate of a kind, per million opportunities.
            pub fn rate(&mut self, kind: Fault) -> &mut u32 {
                match kind {
                    $(Fault::$kind => &mut self.$field,)+
                }
            }
        }
    };
}

faults! {
    /// An event is lost; only the next list shows it.
    lost_events LostEvent 10_000;
    /// An event comes twice.
    repeated_events RepeatedEvent 20_000;
    /// An event comes up to 30 s late, after later events.
    delayed_events DelayedEvent 20_000;
    /// A request is rejected because the object has changed.
    conflicts Conflict 20_000;
    /// A request is forbidden.
    failures Failure 5_000;
    /// A request succeeds, but the response is lost.
    lost_answers LostAnswer 20_000;
    /// A request is lost before it reaches the API server.
    lost_requests LostRequest 10_000;
    /// A victim takes minutes to terminate.
    slow_victims SlowVictim 100_000;
    /// A node is removed, and added again after minutes (drawn once per point in time).
    lost_nodes LostNode 500;
    /// The scheduler is restarted (drawn once per step).
    restarts Restart 5_000;
    /// A hostile tenant creates, changes or deletes an object (drawn once per point in time).
    hostile_objects HostileObject 10_000;
    /// A bound pod gets the label of a queue that does not exist (drawn once per point in time).
    relabelled_pods RelabelledPod 5_000;
}

impl Faults {
    /// Whether no fault is injected.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

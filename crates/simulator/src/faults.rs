//! What goes wrong, and how often: in so many of a million cases.

use serde::{Deserialize, Serialize};

/// Makes the types of the table below. Each row: what goes wrong, the field of its rate, its kind, and its rate where a bit of everything
/// goes wrong.
macro_rules! faults {
    ($(#[doc = $doc:literal] $field:ident $kind:ident $some:literal;)+) => {
        /// What goes wrong.
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
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$kind,)+];
        }

        impl Faults {
            /// A bit of everything.
            pub const SOME: Self = Self { $($field: $some,)+ };

            /// In how many of a million cases this kind happens.
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
    /// An event comes up to half a minute late, after others that were after it.
    delayed_events DelayedEvent 20_000;
    /// A request finds that the object has changed.
    conflicts Conflict 20_000;
    /// A request fails for want of a right.
    failures Failure 5_000;
    /// A request works, but its answer never comes.
    lost_answers LostAnswer 20_000;
    /// A request is lost, and so is its answer.
    lost_requests LostRequest 10_000;
    /// A victim takes minutes to go.
    slow_victims SlowVictim 100_000;
    /// By step: a node vanishes, and comes back after some minutes.
    lost_nodes LostNode 500;
    /// By step: the scheduler is killed and started anew.
    restarts Restart 5_000;
}

impl Faults {
    /// Whether nothing goes wrong.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

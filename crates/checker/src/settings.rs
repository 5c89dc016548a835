//! The settings of policy Kubernetes that the checker reads, from the arguments of a profile.

use reprieve_api::Profile;

use crate::owners::OWNERS;

/// The settings of policy Kubernetes that the checker reads.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whether no victim of a group may be above the lowest sufficient priority (docs/rules/kubernetes-groups.md#g17).
    pub priority_cut: bool,
    /// The maximum by which a group's preemption priority may exceed its scheduling priority.
    pub max_preemption_priority_excess: u32,
    /// Whether only the greedy placement of a group counts, and not every assignment (docs/rules/kubernetes-groups.md#g24).
    pub greedy: bool,
    /// Whether a unit waits while preempted pods terminate on a nominated node, also if it would not fit there
    /// (docs/rules/kubernetes-groups.md#g25).
    pub waits_for_stale_nominations: bool,
    /// Whether the cost of a plan includes what returning victims evict (docs/rules/kubernetes-groups.md#g28).
    pub cascades: bool,
    /// Whether a group is refused whose members differ from it (docs/rules/kubernetes-groups.md#g20).
    pub refuses_mismatch: bool,
    /// The owners whose pods form gangs (docs/rules/kubernetes-groups.md#ga8).
    pub gangs_from_owners: GangsFromOwners,
}

/// The argument `gangsFromOwners`: for each kind of [`crate::owners::OWNERS`] whether its pods form gangs.
pub type GangsFromOwners = [bool; 6];

impl Default for Settings {
    fn default() -> Self {
        Self {
            priority_cut: true,
            max_preemption_priority_excess: 1_000,
            greedy: false,
            waits_for_stale_nominations: false,
            cascades: true,
            refuses_mismatch: false,
            gangs_from_owners: [true; 6],
        }
    }
}

impl Settings {
    /// The settings of a profile, whose arguments are valid.
    pub fn of(profile: &Profile) -> Self {
        let is_compatible = profile.args.contains_key("compatibility");
        let text = |name: &str| profile.args.get(name).and_then(|value| value.as_str());
        let cut = profile.args.get("priorityCut").and_then(|value| value.as_bool());
        let excess = profile.args.get("maxPreemptionPriorityExcess").and_then(|value| value.as_u64());
        let excess = excess.and_then(|excess| u32::try_from(excess).ok());
        let default = Self::default();
        let listed = profile.args.get("gangsFromOwners").and_then(|value| value.as_array());
        let is_listed = |name: &str| listed.is_some_and(|list| list.iter().any(|item| item == name));
        let owners = OWNERS.map(|(_, _, name, _)| if listed.is_some() { is_listed(name) } else { !is_compatible });
        Self {
            priority_cut: cut.unwrap_or(!is_compatible),
            max_preemption_priority_excess: excess.unwrap_or(default.max_preemption_priority_excess),
            gangs_from_owners: owners,
            greedy: text("search").map_or(is_compatible, |search| search == "Greedy"),
            cascades: text("cascades").map_or(!is_compatible, |cascades| cascades == "Include"),
            refuses_mismatch: text("priorityMismatch").map_or(is_compatible, |mismatch| mismatch == "Refuse"),
            waits_for_stale_nominations: text("staleNominations").map_or(is_compatible, |stale| stale == "Wait"),
        }
    }
}

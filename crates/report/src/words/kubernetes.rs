//! Laws of policy Kubernetes.

use reprieve_api::FullName;
use reprieve_engine::laws::About;

use super::{Words, words};

pub fn disagreement(member: &FullName, about: &About) -> Words {
    let text = match about {
        About::Priority { member: own, group } => {
            format!("{member} has priority {}, but its group has {}", own.0, group.0)
        }
        About::Preempting { member: own, group } => {
            let policy = |preempts: bool| if preempts { "PreemptLowerPriority" } else { "Never" };
            format!("{member} has preemptionPolicy {}, but its group has {}", policy(*own), policy(*group))
        }
    };
    words("Disagreement", text)
}

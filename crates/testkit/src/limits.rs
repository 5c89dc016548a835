//! A share of containers writes what it needs under limits alone, wholly or for some resources. The API server makes that a request, so
//! that no decision changes; whether it does is a property test.

use serde_json::{Map, Value};

use crate::rng::Rng;

/// Rewrites some containers of a pod's spec. The same spec and number give the same result.
pub(crate) fn write_some_as_limits(spec: &mut Value, number: u64) {
    let mut rng = Rng::new(number ^ 0x6c69_6d69_7473);
    for list in ["containers", "initContainers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let all = rng.chance(15);
            let some = rng.chance(15);
            let Some(Value::Object(resources)) = container.get_mut("resources") else { continue };
            let Some(Value::Object(requests)) = resources.remove("requests") else { continue };
            let (limits, requests): (Map<_, _>, Map<_, _>) =
                requests.into_iter().partition(|_| all || some && rng.chance(50));
            for (field, list) in [("limits", limits), ("requests", requests)] {
                if field == "requests" || !list.is_empty() {
                    resources.insert(field.to_owned(), Value::Object(list));
                }
            }
        }
    }
}

/// The resources of a container in flow style; `wants` is a list in flow style, too.
pub(crate) fn resources(wants: &str, number: u64) -> String {
    let mut rng = Rng::new(number ^ 0x6c69_6d69_7473);
    match (rng.up_to(20), wants.split_once(", ")) {
        (0..=2, _) => format!("{{limits: {{{wants}}}}}"),
        (3..=4, Some((first, others))) => format!("{{requests: {{{first}}}, limits: {{{others}}}}}"),
        _ => format!("{{requests: {{{wants}}}}}"),
    }
}

/// A number for a text: FNV-1a.
pub(crate) fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

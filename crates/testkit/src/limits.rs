//! Moves requests of some containers to limits, for all or for some resources. The API server derives the request from the limit, so no
//! decision may change; a property test checks that.

use serde_json::{Map, Value};

use crate::rng::Rng;

/// Moves requests of some containers of a pod's spec to limits. The same spec and number give the same result.
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

/// The resources of a container in YAML flow style. `wants` is the list of requests in the same style.
pub(crate) fn resources(wants: &str, number: u64) -> String {
    let mut rng = Rng::new(number ^ 0x6c69_6d69_7473);
    match (rng.up_to(20), wants.split_once(", ")) {
        (0..=2, _) => format!("{{limits: {{{wants}}}}}"),
        (3..=4, Some((first, others))) => format!("{{requests: {{{first}}}, limits: {{{others}}}}}"),
        _ => format!("{{requests: {{{wants}}}}}"),
    }
}

/// The FNV-1a hash of a text.
pub(crate) fn digest(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

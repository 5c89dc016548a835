//! Lines with hostile objects and damaged lines: a watch reads each alone and never panics.

use reprieve_api::{Kind, ObjectSet};
use reprieve_simulator::hostile::{Harm, Hostile, Targets, words};
use reprieve_simulator::rng::Rng;
use serde_json::json;

use super::line::parse_line;
use crate::trim::ObjectTrimmer;

/// Reads a line; the result is the version after it, or `None` if the watch has to start again.
fn read(kind: Kind, line: &[u8]) -> Option<u64> {
    let mut version = 0;
    parse_line(kind, line, &mut ObjectTrimmer::default(), &mut version).ok().map(|_| version)
}

fn lines(seed: u64) -> impl Iterator<Item = (Kind, String)> {
    let targets = Targets::of(&ObjectSet::default());
    let mut objects = Vec::new();
    let mut hostile = Hostile::new(seed, &targets, Harm::Any);
    for type_ in ["ADDED", "MODIFIED", "DELETED"] {
        let (kind, mut object) = hostile.json(Kind::ALL);
        object["metadata"]["resourceVersion"] = json!("7");
        if object["metadata"]["name"] == "" {
            object["metadata"]["name"] = json!("a");
        }
        objects.push((kind, json!({"type": type_, "object": object}).to_string()));
    }
    objects.into_iter()
}

#[test]
fn object_of_any_form_does_not_interrupt_the_watch() {
    for (kind, line) in (0..1_500).flat_map(lines) {
        assert_eq!(read(kind, line.as_bytes()), Some(7), "{line}");
    }
}

#[test]
fn damaged_line_does_not_panic() {
    let mut rng = Rng::new(1);
    for (kind, line) in (0..1_500).flat_map(lines) {
        let mut bytes = line.into_bytes();
        for _ in 0..rng.range(1, 4) {
            let at = usize::try_from(rng.below(bytes.len() as u64 + 1)).unwrap_or_default();
            let end = (at + 3).min(bytes.len());
            match rng.below(3) {
                0 => _ = bytes.drain(at..end),
                1 => _ = bytes.splice(at..end, rng.pick(words::TEXTS).bytes()),
                _ => bytes.insert(at, rng.pick(b"\0\"{}[],:9\x80\xff")),
            }
        }
        read(kind, &bytes);
    }
}

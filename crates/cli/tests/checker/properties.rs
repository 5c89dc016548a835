//! The checker accepts every decision of the engine on random clusters, and for a pod no other answer. A seed that
//! fails is printed as a PreemptionTest, with all documents left out that do not matter.

use std::collections::BTreeMap;

use reprieve_api::answer::Answer;
use reprieve_api::meta::NamespacedName;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::test_file::{OutcomeName, VictimRef};

use crate::case::Case;
use crate::random_cluster::random_cluster;

/// The number of random clusters.
const SEEDS: u64 = 1500;

#[test]
fn every_decision_on_a_random_cluster_is_accepted() {
    let mut seen = BTreeMap::new();
    for seed in 0..SEEDS {
        let mut documents = random_cluster(seed);
        let priority_cut = seed % 2 == 0;
        // Small clusters have few nominations that still stand; as kube-scheduler, a group waits for the others too.
        if !priority_cut && let Some(test) = documents.first_mut() {
            *test = test.replace("policy: Kubernetes", "policy: Kubernetes, args: {staleNominations: Wait}");
        }
        let case = Case::read(&documents.join("\n---\n"), priority_cut)
            .unwrap_or_else(|error| panic!("seed {seed} cannot be decided: {error}\n{}", documents.join("\n---\n")));
        *seen.entry((case.spec.preemptor.kind.clone(), case.answer.outcome)).or_insert(0) += 1;
        if !may_depend_on_the_order(&case) && !case.findings().is_empty() {
            let documents = smallest(documents, priority_cut);
            let findings = findings(&documents, priority_cut).unwrap_or_default().join("\n");
            panic!("seed {seed}, cut {priority_cut}: {findings}\n{}", documents.join("\n---\n"));
        }
    }
    assert_eq!(seen.len(), 8, "every outcome for a pod and for a group is among them: {seen:?}");
}

/// Members that differ may fit in one order and not in another. The rules place them by name; whether a second order may be
/// tried before a victim is taken is not specified, so these clusters are skipped.
fn may_depend_on_the_order(case: &Case) -> bool {
    let members = case.objects.pods.iter().filter_map(|pod| {
        let spec = pod.object.spec.as_ref()?;
        let group = spec.scheduling_group.as_ref()?.pod_group_name.as_deref();
        (pod.object.node_name.is_none() && group == Some("urgent")).then_some((&pod.object.metadata.labels, spec))
    });
    let members: Vec<_> = members.collect();
    case.answer.outcome == OutcomeName::Schedule && members.iter().any(|member| member != &members[0])
}

/// For a pod there is one right answer, but for the choice among nodes that fit: any other is objected to.
#[test]
fn every_other_answer_for_a_pod_of_a_random_cluster_is_rejected() {
    let mut tried = 0;
    for seed in 0..SEEDS {
        let text = random_cluster(seed).join("\n---\n");
        let read = || Case::read(&text, true).expect("random clusters can be decided");
        let right = read();
        if right.spec.preemptor.kind != "Pod" {
            continue;
        }
        for wrong in other_answers(&right.objects, &right.answer).into_iter().map(|answer| Case { answer, ..read() }) {
            tried += 1;
            let findings = wrong.findings();
            assert!(
                !findings.is_empty(),
                "seed {seed}: {:?} is accepted, and so is {:?}\n{text}",
                right.answer,
                wrong.answer
            );
        }
    }
    assert!(tried > SEEDS, "there were {tried} other answers");
}

/// Other outcomes; one victim fewer or more; another node.
fn other_answers(objects: &ObjectSet, right: &Answer) -> Vec<Answer> {
    use OutcomeName::{Preempt, Schedule, Unschedulable, Wait};
    let outcomes = [Schedule, Preempt, Wait, Unschedulable].into_iter().filter(|outcome| *outcome != right.outcome);
    let mut answers: Vec<Answer> = outcomes.map(|outcome| Answer { outcome, ..right.clone() }).collect();
    if right.outcome != Preempt {
        return answers;
    }
    for at in 0..right.victims.len() {
        let mut fewer = right.clone();
        fewer.victims.remove(at);
        answers.push(fewer);
    }
    for pod in objects.pods.iter().map(|pod| NamespacedName::from_meta(&pod.object.metadata).to_string()) {
        let victim = VictimRef { pod: Some(pod), ..VictimRef::default() };
        if !right.victims.contains(&victim) {
            let mut more = right.clone();
            more.victims.push(victim);
            answers.push(more);
        }
    }
    for node in objects.nodes.iter().filter_map(|node| node.object.metadata.name.clone()) {
        let mut elsewhere = right.clone();
        elsewhere.nominated.values_mut().for_each(|nominated| nominated.clone_from(&node));
        if elsewhere != *right {
            answers.push(elsewhere);
        }
    }
    answers
}

fn findings(documents: &[String], priority_cut: bool) -> Option<Vec<String>> {
    let case = Case::read(&documents.join("\n---\n"), priority_cut).ok()?;
    let findings = case.findings();
    let claimed = |finding| format!("{finding}; claimed {:?}", case.answer);
    Some(findings.iter().map(claimed).collect())
}

/// Leaves out what does not matter, as long as something is wrong.
fn smallest(mut documents: Vec<String>, priority_cut: bool) -> Vec<String> {
    let mut at = 1;
    while at < documents.len() {
        let mut fewer = documents.clone();
        fewer.remove(at);
        if findings(&fewer, priority_cut).is_some_and(|findings| !findings.is_empty()) {
            documents = fewer;
            at = 1;
        } else {
            at += 1;
        }
    }
    documents
}

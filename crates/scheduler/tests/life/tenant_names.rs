//! Names that tenants choose appear neither in the file names of recorded decisions nor in the labels of metrics, nor on objects of other
//! tenants.

use reprieve_api::kinds::{Object, ObjectKey};
use reprieve_api::test_file::Profile;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::yunikorn::YuniKorn;
use reprieve_scheduler::Scheduler;
use reprieve_scheduler::action::Action;
use reprieve_scheduler::effects::apply;
use reprieve_scheduler::event::{ActionResult, Event};

use crate::harness::*;

#[test]
fn file_name_of_a_recorded_decision_is_time_and_digest() {
    let name = |cpu: i32| {
        let scheduler = fresh().recording(Profile::default());
        let mut life = Life::of(scheduler, with(vec![pod("tenants-word", 0, cpu, None)]));
        life.step().record.expect("the decision is recorded").name
    };
    assert_eq!(name(1), name(1));
    assert_ne!(name(1), name(2), "the digest depends on the input");
    let (time, digest) = name(1).split_once('-').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("two parts");
    assert_eq!(time, "20260101T010001.000000Z");
    assert!(digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
}

/// A configuration with the queue `root.a`, below which pods may name queues of their own.
const QUEUES: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {namespace: yunikorn, name: yunikorn-configs}
data:
  queues.yaml: |
    partitions:
    - name: default
      queues:
      - name: root
        queues:
        - {name: a}
        - {name: users, parent: true}
";

#[test]
fn queue_that_only_a_pod_names_has_the_label_other() {
    let in_queue = |name: &str, queue: &str| {
        let mut pod = pod(name, 0, 1, None);
        pod.metadata_mut().labels = Some([("queue".to_owned(), queue.to_owned())].into());
        pod
    };
    let pods = vec![in_queue("one", "root.a"), in_queue("two", "root.users.tenants-word"), pod("three", 0, 1, None)];
    let objects = read(QUEUES).into_iter().chain(pods).collect();
    let mut life = Life::of(Scheduler::new("reprieve", Policy::YuniKorn(YuniKorn::default())), objects);
    while life.scheduler.step(life.now).is_some() {}
    let mut queues: Vec<String> = life.scheduler.waiting_by_queue().map(|(queue, _)| queue).collect();
    queues.sort();
    assert_eq!(queues, ["", "other", "root.a"]);
}

/// A pod in the namespace `other`.
fn elsewhere(name: &str, priority: i32, cpu: i32, node: Option<&str>) -> Object {
    let mut pod = pod(name, priority, cpu, node);
    pod.metadata_mut().namespace = Some("other".to_owned());
    pod
}

#[test]
fn units_show_no_names_of_another_namespace() {
    for names in [false, true] {
        let pods = vec![elsewhere("secret", 0, 4, Some("node")), pod("high", 10, 4, None)];
        let mut life = Life::of(fresh().naming_preemptors(names), with(pods));
        let mut texts = Vec::new();
        while let Some(step) = life.scheduler.step(life.now) {
            for (id, action) in &step.actions {
                match action {
                    Action::EmitEvent { about, related, message, .. } if about.name.namespace == "default" => {
                        texts.push(message.clone());
                        texts.extend(related.as_ref().map(ToString::to_string));
                    }
                    Action::SetCondition { object, condition, .. } if object.name.namespace == "default" => {
                        texts.push(condition.message.clone());
                    }
                    _ => {}
                }
                let Some((kind, target)) = action.changes() else { continue };
                let mut object = life.objects[&ObjectKey::new(kind, target.name.clone())].clone();
                assert!(apply(action, &mut object, life.now), "{action:?}");
                let object = life.store(object);
                life.scheduler.observe(Event::Upserted(object), life.now);
                life.complete(*id, ActionResult::Ok { version: life.version });
            }
        }
        let of_victim: Vec<&String> =
            texts.iter().filter(|text| text.contains("evicting") || text.contains("victim")).collect();
        assert!(of_victim.iter().any(|text| text.contains("evicting Pod")), "{texts:?}");
        assert_eq!(texts.iter().any(|text| text.contains("other/secret")), names, "{texts:?}");
    }
}

#[test]
fn the_reason_of_one_namespace_is_not_shown_in_another() {
    let claims = |pod: Object| {
        let mut text = serde_json::to_value(&pod).expect("a pod is JSON");
        text["spec"]["resourceClaims"] = serde_json::json!([{"name": "a", "resourceClaimName": "a"}]);
        Object::from(serde_json::from_value::<reprieve_api::Pod>(text).expect("a pod"))
    };
    let group = |namespace: &str, name: &str| {
        let gang = GANG
            .replace("namespace: default", &format!("namespace: {namespace}"))
            .replace("minCount: 2", "minCount: 1");
        let mut member = claims(member(name));
        member.metadata_mut().namespace = Some(namespace.to_owned());
        read(&gang).into_iter().chain([member])
    };
    let mut life = Life::new(with(group("default", "secret").chain(group("other", "plain")).collect()));
    let mut messages = Vec::new();
    while let Some(step) = life.scheduler.step(life.now) {
        for (_, action) in &step.actions {
            if let Action::SetCondition { object, condition, .. } = action {
                messages.push((object.name.namespace.clone(), condition.message.clone()));
            }
        }
        assert!(messages.len() < 20);
    }
    assert!(messages.iter().any(|(namespace, _)| namespace == "other"), "{messages:?}");
    let leaks = |(namespace, text): &&(String, String)| namespace == "other" && text.contains("secret");
    assert_eq!(messages.iter().find(leaks), None);
}

//! Names that tenants choose appear neither in the file names of recorded decisions nor in the labels of metrics.

use reprieve_api::test_file::Profile;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::yunikorn::YuniKorn;
use reprieve_scheduler::Scheduler;

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

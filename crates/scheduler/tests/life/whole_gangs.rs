//! A PodGroup with `disruptionMode: all` is evicted whole under every policy that chooses pods, also if the PodGroup arrives last.

use reprieve_api::kinds::Object;
use reprieve_api::pod::Pod;
use reprieve_engine::policy::Policy;
use reprieve_engine::policy::koordinator::Koordinator;
use reprieve_engine::policy::kubernetes::Kubernetes;
use reprieve_engine::policy::yunikorn::YuniKorn;
use reprieve_scheduler::Scheduler;
use reprieve_scheduler::event::Event;

use crate::harness::*;

const QUEUES: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: yunikorn-configs, namespace: yunikorn, uid: queues}
data:
  queues.yaml: |
    partitions: [{name: default, queues: [{name: root, queues: [{name: a, resources: {guaranteed: {vcore: 4}}}, {name: b}]}]}]
";

fn in_queue(object: Object, queue: &str, group: Option<&str>) -> Object {
    let Object::Pod(pod) = object else { panic!("it is a pod") };
    let mut pod = Pod::clone(&pod);
    pod.metadata.labels = Some([("queue".to_owned(), queue.to_owned())].into());
    pod.spec_mut().scheduling_group.get_or_insert_default().pod_group_name = group.map(str::to_owned);
    Object::from(pod)
}

#[test]
fn a_group_is_evicted_whole_under_every_policy() {
    let policies = [
        Policy::Kubernetes(Kubernetes::default()),
        Policy::YuniKorn(YuniKorn::default()),
        Policy::Koordinator(Koordinator { deletes_victims: true, ..Koordinator::default() }),
    ];
    for policy in policies {
        for is_group_last in [false, true] {
            let running = ["a", "b"].map(|name| in_queue(pod(name, 0, 2, Some("node")), "root.b", Some("gang")));
            let high = in_queue(pod("high", 10, 2, None), "root.a", None);
            let group = read(ALL_OR_NOTHING_GANG);
            let objects = with(running.into_iter().chain([high]).chain(read(QUEUES)).collect());
            let first = if is_group_last { Vec::new() } else { group.clone() };
            let mut life = Life::of(Scheduler::new("reprieve", policy), objects.into_iter().chain(first).collect());
            if is_group_last {
                let group = life.store(group[0].clone());
                life.scheduler.observe(Event::Upserted(group), life.now);
            }
            let mut all = Vec::new();
            while let Some(step) = life.scheduler.step(life.now) {
                all.extend(evicted(&step).into_iter().map(str::to_owned));
                life.succeed(&step);
            }
            all.sort();
            assert_eq!(all, ["a", "b"], "{policy:?}, the group arrives last: {is_group_last}");
        }
    }
}

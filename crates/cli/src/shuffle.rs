//! The same objects in another order: no decision may depend on it.

use reprieve_objects::objects::Objects;

/// A shuffle that is the same on every machine; rounds differ.
pub fn shuffled(objects: &Objects, round: u64) -> Objects {
    let mut objects = objects.clone();
    let mut state = round.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    shuffle(&mut objects.nodes, &mut state);
    shuffle(&mut objects.pods, &mut state);
    shuffle(&mut objects.namespaces, &mut state);
    shuffle(&mut objects.priority_classes, &mut state);
    shuffle(&mut objects.limit_ranges, &mut state);
    shuffle(&mut objects.runtime_classes, &mut state);
    shuffle(&mut objects.budgets, &mut state);
    shuffle(&mut objects.pod_groups, &mut state);
    shuffle(&mut objects.workloads, &mut state);
    shuffle(&mut objects.elastic_quotas, &mut state);
    shuffle(&mut objects.job_groups, &mut state);
    shuffle(&mut objects.resource_flavors, &mut state);
    shuffle(&mut objects.cluster_queues, &mut state);
    shuffle(&mut objects.cohorts, &mut state);
    shuffle(&mut objects.local_queues, &mut state);
    shuffle(&mut objects.workload_classes, &mut state);
    shuffle(&mut objects.kueue_workloads, &mut state);
    objects
}

fn shuffle<T>(items: &mut [T], state: &mut u64) {
    for at in (1..items.len()).rev() {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(at, (*state >> 33) as usize % (at + 1));
    }
}

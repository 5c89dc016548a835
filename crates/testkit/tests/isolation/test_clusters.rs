//! The clusters of the tests: the cases of `conformance` and random ones, each with a question of an honest tenant.

use std::path::Path;
use std::sync::Arc;

use reprieve_api::kinds::Object;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::test_file::TestSpec;
use reprieve_api::{Kind, Source};
use reprieve_engine::policy::Policy;
use reprieve_loader::cache::SnapshotCache;
use reprieve_loader::policy::{policy, reads};
use reprieve_simulator::hostile::{Hostile, SCHEDULER};
use reprieve_testkit::random::{self, Options};
use reprieve_testkit::{random_cohorts, random_jobs, random_queues};

/// A cluster with a question.
pub struct TestCluster {
    pub name: String,
    pub spec: TestSpec,
    pub policy: Policy,
    pub objects: Vec<Object>,
}

impl TestCluster {
    /// Reads a PreemptionTest file. Pods and uids are completed as by an API server.
    fn read(name: String, text: &str) -> Self {
        let mut read = ObjectSet::default();
        let mut test = None;
        for document in documents(&name, text) {
            let found = document.read(&mut read).unwrap_or_else(|error| panic!("{error}"));
            test = test.or(found);
        }
        let spec = test.unwrap_or_else(|| panic!("{name} is a test")).object.spec.clone();
        let policy = policy(&spec.profile).unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut cluster = Self { name, spec, policy, objects: Vec::new() };
        cluster.objects =
            read.iter().filter(|object| cluster.reads(object.kind())).map(|object| cluster.completed(object)).collect();
        cluster.objects.push(Hostile::node());
        cluster
    }

    fn completed(&self, mut object: Object) -> Object {
        let scheduler = self.scheduler().to_owned();
        if let Object::Pod(pod) = &mut object {
            Arc::make_mut(pod).spec_mut().scheduler_name.get_or_insert(scheduler);
        }
        let uid = object.key().to_string();
        object.metadata_mut().uid.get_or_insert(uid);
        object
    }

    /// The name of the scheduler that decides.
    pub fn scheduler(&self) -> &str {
        self.spec.profile.scheduler_name.as_deref().unwrap_or(SCHEDULER)
    }

    /// A cache without objects, as the scheduler has it at its start.
    pub fn cache(&self) -> SnapshotCache {
        SnapshotCache::default().for_scheduler(self.scheduler(), &self.policy)
    }

    /// Whether a scheduler of this policy watches the kind.
    pub fn reads(&self, kind: Kind) -> bool {
        reads(&self.policy, kind)
    }

    /// The kinds that the hostile tenant writes and the scheduler watches.
    pub fn hostile_kinds(&self) -> Vec<Kind> {
        Hostile::kinds().filter(|kind| self.reads(*kind)).collect()
    }
}

/// A list for a fresh load.
pub fn object_set<'o>(objects: impl IntoIterator<Item = &'o Object>) -> ObjectSet {
    let source = Source { file: "the cluster".into(), document: 1, item: None };
    let mut set = ObjectSet::default();
    for object in objects {
        set.push(object, &source);
    }
    set
}

/// The cases of `conformance` that can be loaded, in the order of their names.
pub fn cases() -> Vec<TestCluster> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the cases are there") {
        for file in std::fs::read_dir(entry.expect("a folder").path()).expect("a folder of cases") {
            files.push(file.expect("a file").path());
        }
    }
    files.sort();
    assert!(files.len() > 400, "the cases are there");
    let read = |file: &std::path::PathBuf| {
        let text = std::fs::read_to_string(file).expect("a case is text");
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        (text.len() < 40_000).then(|| TestCluster::read(name, &text))
    };
    files.iter().filter_map(read).collect()
}

/// Random clusters of all policies.
pub fn random(seeds: std::ops::Range<u64>) -> impl Iterator<Item = TestCluster> {
    seeds.flat_map(|seed| {
        let sort = random_cohorts::Kind::ALL[usize::try_from(seed % 3).unwrap_or_default()];
        [
            ("pods", random::cluster(seed, &Options::everything()).to_json()),
            ("queues", random_queues::cluster(seed)),
            ("jobs", random_jobs::cluster(seed, &random_jobs::Options::EVERYTHING)),
            ("workloads", random_cohorts::cluster(sort, seed)),
        ]
        // A toleration of every taint would open the node of the hostile tenant to other pods.
        .map(|(kind, text)| {
            (kind, text.replace(r#"{"operator":"Exists"}"#, r#"{"key":"dedicated","operator":"Exists"}"#))
        })
        .map(|(kind, text)| TestCluster::read(format!("random {kind} {seed}"), &text))
    })
}

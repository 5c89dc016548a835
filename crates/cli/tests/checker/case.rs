//! A conformance case with the decision of the engine.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use reprieve_api::answer::Answer;
use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::source::InputError;
use reprieve_api::test_file::{OutcomeName, TestSpec, VictimRef};
use reprieve_checker::{Claim, Finding, Settings, check};
use reprieve_loader::build::{OnInvalid, load_for};
use reprieve_loader::policy::{DEFAULT_NOW, Question, policy};
use reprieve_loader::time::parse_time;
use reprieve_report::answer::answer;

pub struct Case {
    pub objects: ObjectSet,
    pub spec: TestSpec,
    pub now: Timestamp,
    pub priority_cut: bool,
    pub answer: Answer,
}

impl Case {
    /// Reads a PreemptionTest and decides it, with the cut over priorities or without.
    pub fn read(text: &str, priority_cut: bool) -> Result<Self, InputError> {
        let mut objects = ObjectSet::default();
        let mut spec = None;
        for document in documents("case", text) {
            spec = document.read(&mut objects)?.map(|test| test.object.spec.clone()).or(spec);
        }
        let mut spec = spec.expect("the case begins with its test");
        spec.profile.args.insert("priorityCut".to_owned(), priority_cut.into());
        let mut loaded = load_for(&objects, OnInvalid::Reject, &policy(&spec.profile)?)?;
        let answer = answer(&Question::new(&spec, &loaded)?, &mut loaded);
        let now = parse_time(spec.now.as_deref().unwrap_or(DEFAULT_NOW))?;
        Ok(Self { objects, spec, now, priority_cut, answer })
    }

    /// One of the conformance cases.
    pub fn named(name: &str) -> Self {
        let text = fs::read_to_string(conformance().join(format!("{name}.yaml"))).expect("the case exists");
        Self::read(&text, true).expect("the case can be decided")
    }

    pub fn findings(&self) -> Vec<Finding> {
        let Self { objects, spec, now, priority_cut, answer } = self;
        check(&Claim {
            objects,
            now: *now,
            preemptor: &spec.preemptor,
            settings: Settings { priority_cut: *priority_cut, ..Settings::of(&spec.profile) },
            scheduler_name: None,
            answer,
        })
    }

    pub fn drop_victim(&mut self, pod: &str) {
        self.answer.victims.retain(|victim| victim.pod.as_deref() != Some(pod));
    }

    pub fn add_victim(&mut self, pod: &str) {
        self.answer.victims.push(VictimRef { pod: Some(pod.to_owned()), ..VictimRef::default() });
    }

    pub fn nominate(&mut self, pod: &str, node: &str) {
        self.answer.nominated.insert(pod.to_owned(), node.to_owned());
    }

    pub fn claim(&mut self, outcome: OutcomeName) {
        self.answer = Answer { outcome, victims: Vec::new(), nominated: Default::default() };
    }
}

fn conformance() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}

/// Whether a case asks for the policy that the checker knows.
pub fn is_for_kubernetes(text: &str) -> bool {
    let mut objects = ObjectSet::default();
    let first = documents("case", text).into_iter().next().and_then(|first| first.read(&mut objects).ok().flatten());
    first.is_some_and(|test| test.object.spec.profile.policy == "Kubernetes")
}

/// All conformance cases.
pub fn cases() -> Vec<PathBuf> {
    let entries = |path: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(path).expect("the folder can be read");
        entries.map(|entry| entry.expect("the entry can be read").path()).collect()
    };
    let folders = entries(&conformance()).into_iter().filter(|path| path.is_dir());
    let mut files: Vec<PathBuf> = folders.flat_map(|folder| entries(&folder)).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    files
}

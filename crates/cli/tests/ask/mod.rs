//! Reads, loads and decides the objects of a text, as the fuzz target does; ends with a decision or an error.

use reprieve_api::object_set::ObjectSet;
use reprieve_api::read::documents;
use reprieve_api::source::InputError;
use reprieve_api::test_file::TestSpec;
use reprieve_loader::build::{OnInvalid, load, load_for};
use reprieve_loader::policy::{Question, policy};
use reprieve_report::report::decide_and_report;
use reprieve_translate::queue_tree::NeutralQueues;
use reprieve_translate::to_kubernetes::KubernetesObjects;
use reprieve_translate::translation::QuotaSystem;

pub fn ask(text: &str) {
    let mut objects = ObjectSet::default();
    let mut test = None;
    for document in documents("mangled", text) {
        match document.read(&mut objects) {
            Ok(found) => test = found.or(test),
            Err(_) => return,
        }
    }
    if let Some(test) = test {
        let _ = answered(&objects, &test.object.spec);
        let _ = mapped(&objects);
    }
}

/// Decided as it is.
fn answered(objects: &ObjectSet, spec: &TestSpec) -> Result<(), InputError> {
    let mut loaded = load_for(objects, OnInvalid::Quarantine, &policy(&spec.profile)?)?;
    decide_and_report(&Question::new(spec, &loaded)?, &mut loaded);
    Ok(())
}

/// The cluster in the words of every policy.
fn mapped(objects: &ObjectSet) -> Result<(), InputError> {
    let plain = KubernetesObjects::from_objects(objects)?;
    let loaded = load(&plain.objects, OnInvalid::Quarantine)?;
    if let Some(accounts) = NeutralQueues::from_objects(objects, &plain, &Default::default()) {
        for keeper in [QuotaSystem::YuniKorn, QuotaSystem::Koordinator, QuotaSystem::Kueue] {
            load(&accounts.translate_to(keeper, objects, &plain, &loaded)?.objects, OnInvalid::Quarantine)?;
        }
    }
    Ok(())
}

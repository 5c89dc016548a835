//! Reads, loads and decides whatever a text says: it ends with an answer or an error. The fuzz target asks the same.

use reprieve_api::object_set::Objects;
use reprieve_api::read::documents;
use reprieve_api::source::InputError;
use reprieve_api::test_file::TestSpec;
use reprieve_loader::load::{Strictness, load, load_for};
use reprieve_loader::question::{Question, policy};
use reprieve_report::report::report;
use reprieve_translate::queue_tree::NeutralQueues;
use reprieve_translate::to_kubernetes::Plain;
use reprieve_translate::translation::Keeper;

pub fn ask(text: &str) {
    let mut objects = Objects::default();
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
fn answered(objects: &Objects, spec: &TestSpec) -> Result<(), InputError> {
    let mut loaded = load_for(objects, Strictness::Live, &policy(&spec.profile)?)?;
    report(&Question::new(spec, &loaded)?, &mut loaded);
    Ok(())
}

/// The cluster in the words of every policy.
fn mapped(objects: &Objects) -> Result<(), InputError> {
    let plain = Plain::of(objects)?;
    let loaded = load(&plain.objects, Strictness::Live)?;
    if let Some(accounts) = NeutralQueues::from_objects(objects, &plain)? {
        for keeper in [Keeper::YuniKorn, Keeper::Koordinator, Keeper::Kueue] {
            load(&accounts.translate_to(keeper, objects, &plain, &loaded)?.objects, Strictness::Live)?;
        }
    }
    Ok(())
}

//! Whatever the bytes are, reading, loading and deciding ends with an answer or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use reprieve_objects::accounts::{Accounts, Keeper, Plain};
use reprieve_objects::load::{Strictness, load};
use reprieve_objects::objects::Objects;
use reprieve_objects::question::Question;
use reprieve_objects::read::documents;
use reprieve_objects::report::report;
use reprieve_objects::source::InputError;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut objects = Objects::default();
    let mut test = None;
    for document in documents("fuzz", text) {
        match document.read(&mut objects) {
            Ok(found) => test = found.or(test),
            Err(_) => return,
        }
    }
    let (Ok(mut loaded), Some(test)) = (load(&objects, Strictness::Live), test) else {
        return;
    };
    if let Ok(question) = Question::new(&test.object.spec, &loaded) {
        report(&question, &mut loaded);
    }
    let _ = mapped(&objects);
});

/// The cluster in the words of every policy.
fn mapped(objects: &Objects) -> Result<(), InputError> {
    let plain = Plain::of(objects)?;
    let loaded = load(&plain.objects, Strictness::Live)?;
    if let Some(accounts) = Accounts::of(objects, &plain)? {
        for keeper in [Keeper::YuniKorn, Keeper::Koordinator, Keeper::Kueue] {
            load(&accounts.under(keeper, objects, &plain, &loaded)?.objects, Strictness::Live)?;
        }
    }
    Ok(())
}

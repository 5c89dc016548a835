//! Gives names dense ids.

use std::collections::BTreeMap;

/// Gives each name an id, in the order of first use.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    numbers: BTreeMap<String, u32>,
    names: Vec<String>,
}

impl Interner {
    pub fn id(&mut self, name: &str) -> u32 {
        if let Some(&id) = self.numbers.get(name) {
            return id;
        }
        let id = u32::try_from(self.names.len()).expect("fewer than 2^32 names");
        self.numbers.insert(name.to_owned(), id);
        self.names.push(name.to_owned());
        id
    }

    pub fn names(&self) -> &[String] {
        &self.names
    }
}

//! Parses YAML or JSON into a tree of values in which names are text, as in kubectl.
//!
//! The YAML parser guesses the type of a scalar without quotes. Its settings leave `y`, `n`, `on`, `off`, `yes` and `no` as text; for
//! fields that expect a boolean, [`crate::decode`] converts these words. A name such as `12e4567` looks like a number that is too large:
//! kubectl reads it as text, but the parser returns infinity without the text. The first pass notes the position of such a scalar, and of a
//! number larger than any field has (`8180246350127e25`), and a second pass reads it as text.

use std::cell::{Cell, RefCell};
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A larger number is read as text: it is a name or a quantity, because no field of Kubernetes has such a number.
const MAX_NUMBER: f64 = 1e10;

/// Numbers the values of a text in the order of parsing.
#[derive(Debug, Default)]
pub(crate) struct Counter {
    /// Whether the parser guesses which scalars are numbers, as that of YAML does.
    guesses: bool,
    next: Cell<usize>,
    /// The values to read as text, by number, in ascending order.
    as_text: Vec<usize>,
    /// The values that are infinite or at least [`MAX_NUMBER`], by number, in ascending order.
    infinite: RefCell<Vec<usize>>,
}

impl Counter {
    /// Returns the counter for a first pass over YAML or JSON.
    pub fn first_pass(is_json: bool) -> Self {
        Self { guesses: !is_json, ..Self::default() }
    }

    /// Returns the counter for a second pass, which reads the infinite or too large values of the first pass as text.
    pub fn second_pass(first: Self) -> Self {
        Self { guesses: first.guesses, as_text: first.infinite.into_inner(), ..Self::default() }
    }

    /// Whether the pass found an infinite or too large value. Its trees are then incomplete, and a second pass is needed.
    pub fn needs_second_pass(&self) -> bool {
        !self.infinite.borrow().is_empty()
    }
}

/// Parses one value.
#[derive(Clone, Copy)]
pub(crate) struct ValueSeed<'c>(pub &'c Counter);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        let number = self.0.next.get();
        self.0.next.set(number + 1);
        match self.0.as_text.binary_search(&number) {
            Ok(_) => deserializer.deserialize_string(ValueVisitor { counter: self.0, number }),
            Err(_) => deserializer.deserialize_any(ValueVisitor { counter: self.0, number }),
        }
    }
}

struct ValueVisitor<'c> {
    counter: &'c Counter,
    number: usize,
}

impl<'de> Visitor<'de> for ValueVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        let number = Number::from_f64(value);
        if number.is_none() || self.counter.guesses && value.abs() >= MAX_NUMBER {
            self.counter.infinite.borrow_mut().push(self.number);
        }
        Ok(number.map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(ValueSeed(self.counter))? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut values = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            values.insert(key, fields.next_value_seed(ValueSeed(self.counter))?);
        }
        Ok(Value::Object(values))
    }
}

//! Reads a tree of values, as a JSON or YAML parser returned it, with the scalars that kubectl and the API server accept: `yes`, `off` and
//! the like as booleans, `1e3` as an integer, null as empty text. The type that a field asks for decides what its scalar means. The tree
//! does not tell whether a scalar was quoted, so `"yes"` is accepted as a boolean too.

use serde::de::value::{MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, IntoDeserializer, Visitor};
use serde_json::{Error, Value};

/// A tree that is read in this way.
#[derive(Clone, Copy)]
pub(crate) struct Lenient<'v>(pub &'v Value);

/// Below 2^53 a float without a fraction represents exactly one integer.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

impl Lenient<'_> {
    fn as_boolean(self) -> Option<bool> {
        match self.0.as_str()? {
            "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => Some(true),
            "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => Some(false),
            _ => None,
        }
    }

    /// The integer that a float represents.
    fn as_integer(self) -> Option<i64> {
        let float = self.0.as_f64().filter(|float| self.0.is_f64() && float.fract() == 0.0)?;
        (float.abs() < MAX_EXACT_INTEGER).then_some(float as i64)
    }
}

/// Integers of these widths; `k8s-openapi` and the types of this crate have no others.
macro_rules! integers {
    ($($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.as_integer() {
                Some(integer) => visitor.visit_i64(integer),
                None => self.0.$method(visitor),
            }
        }
    )+};
}

/// Text, which null leaves empty.
macro_rules! texts {
    ($($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            if self.0.is_null() { visitor.visit_str("") } else { self.0.$method(visitor) }
        }
    )+};
}

/// Lists and mappings, whose elements are read in the same way.
macro_rules! containers {
    ($($method:ident($($argument:ident: $type:ty),*))+) => {$(
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value, Error> {
            match self.0 {
                Value::Array(_) | Value::Object(_) => self.deserialize_any(visitor),
                _ => self.0.$method($($argument,)* visitor),
            }
        }
    )+};
}

impl<'de> Deserializer<'de> for Lenient<'de> {
    type Error = Error;

    integers!(deserialize_i32 deserialize_i64 deserialize_u32 deserialize_u64);
    texts!(deserialize_str deserialize_string);
    containers!(
        deserialize_seq()
        deserialize_map()
        deserialize_tuple(length: usize)
        deserialize_tuple_struct(name: &'static str, length: usize)
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
    );

    /// A value without a known type is read as it is.
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Array(values) => {
                let mut elements = SeqDeserializer::new(values.iter().map(Lenient));
                let value = visitor.visit_seq(&mut elements)?;
                elements.end().map(|()| value)
            }
            Value::Object(fields) => {
                let mut entries =
                    MapDeserializer::new(fields.iter().map(|(key, value)| (key.as_str(), Lenient(value))));
                let value = visitor.visit_map(&mut entries)?;
                entries.end().map(|()| value)
            }
            _ => self.0.deserialize_any(visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.as_boolean() {
            Some(boolean) => visitor.visit_bool(boolean),
            None => self.0.deserialize_bool(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    /// Enums are read strictly: no enum of an object contains a boolean, an integer or null.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.0.deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i128 u8 u16 u128 f32 f64 char bytes byte_buf unit unit_struct identifier
    }
}

impl<'de> IntoDeserializer<'de, Error> for Lenient<'de> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

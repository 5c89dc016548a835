//! Checks that the field names in `src/fields.txt` are those of the API types. If they differ, the test writes the correct file into the build
//! folder and names its path.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, StatefulSet};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::api::scheduling::v1beta1::PodGroup;
use serde::de::value::StrDeserializer;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

const HEADER: &str = "# The types of the Kubernetes API and their fields; `field:Type` has fields itself. Written by the test `fields`.\n";

/// The type at the end of a path.
#[derive(Clone, Debug)]
enum Shape {
    Struct(&'static str, &'static [&'static str]),
    List,
    Map,
    Other,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Field(&'static str),
    Item,
    Value,
}

/// Guides the decoder of a type along a path, and stops it at the end with an error.
struct Probe<'p> {
    path: &'p [Step],
    found: &'p RefCell<Shape>,
}

#[derive(Debug)]
struct Stop;

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the end of the path")
    }
}

impl std::error::Error for Stop {}

impl serde::de::Error for Stop {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

impl<'p> Probe<'p> {
    fn end<T>(&self, shape: Shape) -> Result<T, Stop> {
        self.found.replace(shape);
        Err(Stop)
    }

    fn next(&self) -> Option<(Step, Probe<'p>)> {
        let (&step, path) = self.path.split_first()?;
        Some((step, Probe { path, found: self.found }))
    }
}

macro_rules! scalars {
    ($($method:ident)+) => {
        $(fn $method<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Stop> {
            self.end(Shape::Other)
        })+
    };
}

impl<'de> Deserializer<'de> for Probe<'_> {
    type Error = Stop;

    scalars! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8
        deserialize_u16 deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64 deserialize_char deserialize_str
        deserialize_string deserialize_bytes deserialize_byte_buf deserialize_unit deserialize_identifier
        deserialize_ignored_any
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Stop> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(self, _: &'static str, _: V) -> Result<V::Value, Stop> {
        self.end(Shape::Other)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Stop> {
        self.end(Shape::Other)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(self, _: &'static str, _: usize, _: V) -> Result<V::Value, Stop> {
        self.end(Shape::Other)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Stop> {
        self.end(Shape::Other)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.next() {
            Some((Step::Item, next)) => visitor.visit_seq(Only("", Some(next))),
            _ => self.end(Shape::List),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Stop> {
        match self.next() {
            Some((Step::Value, next)) => visitor.visit_map(Only("any", Some(next))),
            _ => self.end(Shape::Map),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Stop> {
        match self.next() {
            Some((Step::Field(field), next)) => visitor.visit_map(Only(field, Some(next))),
            _ => self.end(Shape::Struct(name, fields)),
        }
    }
}

/// One key with its value, or one item.
struct Only<'p>(&'static str, Option<Probe<'p>>);

impl<'de> MapAccess<'de> for Only<'_> {
    type Error = Stop;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Stop> {
        seed.deserialize(StrDeserializer::new(self.0)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Stop> {
        seed.deserialize(self.1.take().ok_or(Stop)?)
    }
}

impl<'de> SeqAccess<'de> for Only<'_> {
    type Error = Stop;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Stop> {
        seed.deserialize(self.1.take().ok_or(Stop)?).map(Some)
    }
}

type Types = BTreeMap<String, BTreeMap<&'static str, Option<String>>>;

fn shape_at<'de, T: Deserialize<'de>>(path: &[Step]) -> Shape {
    let found = RefCell::new(Shape::Other);
    let stopped = T::deserialize(Probe { path, found: &found }).is_err();
    assert!(stopped, "{path:?} has an end");
    found.into_inner()
}

/// Adds the struct at the path and all structs below it. Returns its name, or `None` if there is no struct.
fn add<'de, T: Deserialize<'de>>(path: &mut Vec<Step>, types: &mut Types) -> Option<String> {
    let before = path.len();
    let (name, fields) = loop {
        match shape_at::<T>(path) {
            Shape::Struct(name, fields) => break (name, fields),
            Shape::List => path.push(Step::Item),
            Shape::Map => path.push(Step::Value),
            Shape::Other => {
                path.truncate(before);
                return None;
            }
        }
    };
    assert!(path.iter().all(|step| !matches!(step, Step::Value)), "no type has a map with structs: {path:?}");
    if !types.contains_key(name) {
        types.insert(name.to_owned(), BTreeMap::new());
        for &field in fields {
            path.push(Step::Field(field));
            // Controllers write the status, so it has no typing errors.
            let below = if field == "status" { None } else { add::<T>(path, types) };
            path.pop();
            types.get_mut(name).expect("it is there").insert(field, below);
        }
    }
    let known: Vec<&str> = types[name].keys().copied().collect();
    let mut fields = fields.to_vec();
    fields.sort_unstable();
    assert!(known.is_empty() || known == fields, "two types are called {name}: {known:?} and {fields:?}");
    path.truncate(before);
    Some(name.to_owned())
}

#[test]
fn field_names_are_those_of_the_api_types() {
    let mut types = Types::new();
    add::<Pod>(&mut Vec::new(), &mut types);
    add::<Job>(&mut Vec::new(), &mut types);
    add::<Deployment>(&mut Vec::new(), &mut types);
    add::<ReplicaSet>(&mut Vec::new(), &mut types);
    add::<StatefulSet>(&mut Vec::new(), &mut types);
    add::<PodGroup>(&mut Vec::new(), &mut types);
    let mut text = HEADER.to_owned();
    for (name, fields) in &types {
        text.push_str(name);
        for (field, below) in fields {
            text.push(' ');
            text.push_str(field);
            if let Some(below) = below {
                text.push(':');
                text.push_str(below);
            }
        }
        text.push('\n');
    }
    let right = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fields.txt");
    if text != include_str!("../src/fields.txt") {
        std::fs::write(&right, text).expect("the file is written");
        panic!("the types of the API have changed; copy {} to crates/api/src/fields.txt", right.display());
    }
}

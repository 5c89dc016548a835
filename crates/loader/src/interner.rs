//! Gives names and shapes dense ids.

use std::collections::BTreeMap;

use reprieve_engine::ShapeId;
use reprieve_engine::shape::Shape;

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

/// The ids of shapes; equal shapes have the same id.
#[derive(Default)]
pub struct Shapes {
    ids: BTreeMap<Shape, ShapeId>,
    /// Shapes that are not in the snapshot yet, in the order of their ids.
    pub new: Vec<Shape>,
}

impl Shapes {
    pub fn id(&mut self, shape: Shape) -> ShapeId {
        if let Some(&known) = self.ids.get(&shape) {
            return known;
        }
        let next = ShapeId::new(self.ids.len());
        self.new.push(shape.clone());
        self.ids.insert(shape, next);
        next
    }

    /// All shapes, in the order of their ids.
    pub fn in_order(&self) -> Vec<&Shape> {
        let mut shapes: Vec<(ShapeId, &Shape)> = self.ids.iter().map(|(shape, id)| (*id, shape)).collect();
        shapes.sort_unstable_by_key(|(id, _)| *id);
        shapes.into_iter().map(|(_, shape)| shape).collect()
    }
}

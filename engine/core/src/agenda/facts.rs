//! Sets of facts in a form that can be interned: the same facts, in whatever order they come, give the same words.

use crate::compile::step::RelationId;

/// Relation by relation in ascending order: its number, its width, the number of tuples, the tuples, sorted.
#[derive(Default)]
pub struct FactSet {
    words: Vec<i64>,
}

impl FactSet {
    /// A set with room for the facts of most ops.
    pub fn roomy() -> Self {
        FactSet { words: Vec::with_capacity(128) }
    }

    /// Add the tuples of one relation; relations come in ascending order.
    pub fn add<'a>(&mut self, relation: RelationId, width: usize, tuples: impl Iterator<Item = &'a [i64]>) {
        let mut tuples: Vec<&[i64]> = tuples.collect();
        if tuples.is_empty() {
            return;
        }
        tuples.sort_unstable();
        tuples.dedup();
        self.words.extend([relation.0 as i64, width as i64, tuples.len() as i64]);
        self.words.extend(tuples.into_iter().flatten());
    }

    pub fn words(&self) -> &[i64] {
        &self.words
    }
}

/// The tuples of a set of facts, each with its relation.
pub fn tuples(mut words: &[i64]) -> impl Iterator<Item = (RelationId, &[i64])> {
    let mut relation = RelationId(0);
    let (mut width, mut left) = (0, 0);
    std::iter::from_fn(move || {
        if left == 0 {
            let (header, rest) = words.split_at_checked(3)?;
            (relation, width, left) = (RelationId(header[0] as usize), header[1] as usize, header[2]);
            words = rest;
        }
        left -= 1;
        let (tuple, rest) = words.split_at(width);
        words = rest;
        Some((relation, tuple))
    })
}

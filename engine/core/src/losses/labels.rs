//! The labels of the tuples of a relation, by place: of all tuples, or only of those that are asked for.

use crate::error::Fault;
use crate::losses::{ABSENT, LOST};
use crate::relation::places::Places;
use crate::relation::set::{hash, Set};
use crate::relation::Relation;

/// No row.
const NONE: u32 = u32::MAX;
/// Bits for each tuple of which it is seen at once that most others are not it.
const BITS: usize = 16;

pub struct Labels {
    form: Form,
    /// The label behind the one that has taken the place of the first; 0: none has. Most stay so, untouched.
    changed: Vec<u32>,
}

enum Form {
    /// The first label of a tuple is that of its round.
    All {
        places: Places,
        /// The row of each place; `NONE` without a tuple.
        rows: Vec<u32>,
        /// The first row of each round but the first.
        rounds: Vec<usize>,
        /// The labels of a round.
        scale: u32,
    },
    /// The first label is 0. Tuples get places as they are asked for.
    Few { arity: usize, tuples: Vec<i64>, ids: Set },
}

impl Labels {
    /// Of all tuples, whose rounds have `scale` labels each.
    pub fn all(relation: &mut Relation, scale: u32) -> Result<Labels, Fault> {
        let places = relation.places()?;
        let mut rows = vec![NONE; places.count()];
        (0..).zip(relation.by_row(&places)).for_each(|(row, place)| rows[place] = row);
        let changed = vec![0; places.count()];
        Ok(Labels { form: Form::All { places, rows, rounds: relation.rounds().to_vec(), scale }, changed })
    }

    /// Of those that are asked for.
    pub fn few(relation: &mut Relation) -> Result<Labels, Fault> {
        relation.cover()?;
        let form = Form::Few { arity: relation.arity(), tuples: Vec::new(), ids: Set::default() };
        Ok(Labels { form, changed: Vec::new() })
    }

    pub fn bytes(&self) -> usize {
        let changed = self.changed.capacity() * size_of::<u32>();
        changed
            + match &self.form {
                Form::All { places, rows, .. } => places.bytes() + rows.capacity() * size_of::<u32>(),
                Form::Few { tuples, ids, .. } => tuples.capacity() * size_of::<i64>() + ids.bytes(),
            }
    }

    /// The place of a tuple that has one.
    #[inline]
    pub fn find(&self, relation: &Relation, tuple: &[i64]) -> Option<usize> {
        match &self.form {
            Form::All { places, .. } => relation.place(places, tuple),
            Form::Few { arity, tuples, ids } => {
                ids.row(hash(tuple.iter().copied()), |id| tuples[id * arity..][..*arity] == *tuple)
            }
        }
    }

    /// The place of a tuple of the relation.
    #[inline]
    pub fn ask(&mut self, relation: &Relation, tuple: &[i64]) -> Result<Option<usize>, Fault> {
        let found = self.find(relation, tuple);
        let Form::Few { tuples, ids, .. } = &mut self.form else { return Ok(found) };
        if found.is_some() || !relation.contains(tuple) {
            return Ok(found);
        }
        let id = self.changed.len();
        ids.insert_row(hash(tuple.iter().copied()), id, |_| false)?;
        tuples.extend_from_slice(tuple);
        self.changed.push(0);
        Ok(Some(id))
    }

    /// The label of a tuple; None: it is not there.
    #[inline]
    pub fn label(&self, relation: &Relation, tuple: &[i64]) -> Option<u32> {
        match (self.find(relation, tuple), &self.form) {
            (Some(place), _) => Some(self.of(place)),
            (None, Form::Few { .. }) => relation.contains(tuple).then_some(0),
            (None, Form::All { .. }) => None,
        }
    }

    #[inline]
    pub fn of(&self, place: usize) -> u32 {
        match (self.changed[place], &self.form) {
            (0, Form::Few { .. }) => 0,
            (0, Form::All { rows, rounds, scale, .. }) => match rows[place] {
                NONE => ABSENT,
                row => rounds.partition_point(|&first| first <= row as usize) as u32 * scale,
            },
            (behind, _) => behind - 1,
        }
    }

    #[inline]
    pub fn put(&mut self, place: usize, label: u32) {
        self.changed[place] = label + 1;
    }

    /// Have the first label of each tuple again.
    pub fn reset(&mut self) {
        self.changed.fill(0);
    }

    /// In which round a tuple with this label waits.
    #[inline]
    pub fn round(&self, label: u32) -> usize {
        match &self.form {
            Form::All { scale, .. } => (label / scale) as usize,
            Form::Few { .. } => 0,
        }
    }

    /// Copy the tuple in a place.
    pub fn tuple(&self, relation: &Relation, place: usize) -> Vec<i64> {
        match &self.form {
            Form::All { rows, .. } => relation.tuple(rows[place] as usize),
            Form::Few { arity, tuples, .. } => tuples[place * arity..][..*arity].to_vec(),
        }
    }

    /// Which of these places have tuples that are lost.
    pub fn lost(&self, places: &[u32]) -> Vec<u32> {
        places.iter().copied().filter(|&place| self.of(place as usize) == LOST).collect()
    }

    /// The rows of the tuples in places.
    pub fn rows(&self, relation: &Relation, places: &[u32]) -> Vec<u32> {
        match &self.form {
            Form::All { rows, .. } => places.iter().map(|&place| rows[place as usize]).collect(),
            Form::Few { .. } if places.is_empty() => Vec::new(),
            Form::Few { arity, tuples, .. } => {
                let rows = rows_of(relation, *arity, tuples, |tuple| self.find(relation, tuple));
                places.iter().map(|&place| rows[place as usize]).collect()
            }
        }
    }
}

/// The row of each of a few tuples, which lie end to end; `find` gives the number of one.
fn rows_of(
    relation: &Relation,
    arity: usize,
    tuples: &[i64],
    find: impl Fn(&[i64]) -> Option<usize>,
) -> Vec<u32> {
    let count = tuples.len() / arity.max(1);
    let words = (count * BITS).next_power_of_two().max(64) / 64;
    let shift = 64 - (words * 64).ilog2();
    let place = |bit: u64| ((bit / 64) as usize, 1u64 << (bit % 64));
    let mut seen = vec![0u64; words];
    for tuple in tuples.chunks_exact(arity.max(1)) {
        let (word, bit) = place(mixed(arity, |column| tuple[column]) >> shift);
        seen[word] |= bit;
    }
    let (mut rows, mut tuple) = (vec![NONE; count.max(1)], vec![0; arity]);
    for row in 0..relation.visible() {
        let (word, bit) = place(mixed(arity, |column| relation.word(row, column)) >> shift);
        if seen[word] & bit != 0 {
            tuple.iter_mut().enumerate().for_each(|(column, word)| *word = relation.word(row, column));
            if let Some(id) = find(&tuple) {
                rows[id] = row as u32;
            }
        }
    }
    rows
}

/// A quick hash, whose first bits count.
#[inline]
fn mixed(arity: usize, word: impl Fn(usize) -> i64) -> u64 {
    (0..arity).fold(0u64, |state, column| {
        (state.rotate_left(5) ^ word(column) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    })
}

//! Values. A column holds one machine word: numbers as they are, unsigned and float as their bits, symbols
//! and records as numbers of interned texts and tuples.

use std::cmp::Ordering;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::Fault;

/// The type of a column or an operation; records carry the fields of their declared type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    Number,
    Unsigned,
    Float,
    Symbol,
    /// None where the fields do not matter.
    Record(Option<RecordType>),
}

/// An index into `Program::records`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordType(pub usize);

/// The record that has no fields.
pub const NIL: i64 = -1;

/// Numbers things in the order in which they first come.
pub struct Interner<T: ?Sized> {
    ids: FxHashMap<Arc<T>, i64>,
    things: Vec<Arc<T>>,
    /// The size of the things themselves, without `OVERHEAD`.
    bytes: usize,
}

/// The bytes of a thing beside its own: its counts, and its places in the list and in the table.
const OVERHEAD: usize = 64;

impl<T: ?Sized> Clone for Interner<T> {
    fn clone(&self) -> Self {
        Interner { ids: self.ids.clone(), things: self.things.clone(), bytes: self.bytes }
    }
}

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Interner { ids: FxHashMap::default(), things: Vec::new(), bytes: 0 }
    }
}

impl<T: ?Sized + Hash + Eq> Interner<T> {
    /// The thing with this number.
    pub fn thing(&self, id: i64) -> Option<&Arc<T>> {
        self.things.get(usize::try_from(id).ok()?)
    }

    /// About how many bytes all of it takes.
    pub fn bytes(&self) -> usize {
        self.bytes + OVERHEAD * self.things.len()
    }

    pub fn intern(&mut self, thing: &T) -> i64
    where
        Arc<T>: for<'a> From<&'a T>,
    {
        if let Some(&id) = self.ids.get(thing) {
            return id;
        }
        let id = self.things.len() as i64;
        self.bytes += std::mem::size_of_val(thing);
        let thing: Arc<T> = thing.into();
        self.things.push(thing.clone());
        self.ids.insert(thing, id);
        id
    }
}

/// The interned symbols and records.
#[derive(Clone)]
pub struct Values {
    symbols: Interner<str>,
    records: Interner<[i64]>,
    /// How many bytes they may take.
    pub most: usize,
}

impl Default for Values {
    fn default() -> Self {
        Values { symbols: Interner::default(), records: Interner::default(), most: usize::MAX }
    }
}

impl Values {
    /// About how many bytes the symbols and records take.
    pub fn bytes(&self) -> usize {
        self.symbols.bytes() + self.records.bytes()
    }

    /// An error unless there is room for a symbol of so many bytes.
    pub fn room(&self, bytes: usize) -> Result<(), Fault> {
        match self.bytes().checked_add(bytes) {
            Some(all) if all <= self.most => Ok(()),
            _ => Err(Fault::TooMuchMemory(self.most)),
        }
    }

    pub fn symbol(&mut self, text: &str) -> i64 {
        self.symbols.intern(text)
    }

    pub fn text(&self, symbol: i64) -> &Arc<str> {
        &self.symbols.things[symbol as usize]
    }

    /// All symbols, by number.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.symbols.things.iter().map(|text| &**text)
    }

    pub fn record(&mut self, fields: &[i64]) -> i64 {
        self.records.intern(fields)
    }

    /// The fields of a record that is not nil.
    pub fn fields(&self, record: i64) -> &Arc<[i64]> {
        &self.records.things[record as usize]
    }

    /// The order of two values of a type: numbers by value, symbols by their text (code points), records
    /// field by field after nil.
    pub fn compare<'t>(
        &self,
        mut kind: &'t Type,
        records: &'t [Vec<Type>],
        mut a: i64,
        mut b: i64,
    ) -> Ordering {
        // A loop, as records nest as deep as they like. Equal values are equal words.
        loop {
            match kind {
                Type::Number => return a.cmp(&b),
                Type::Unsigned => return (a as u64).cmp(&(b as u64)),
                Type::Float => return f64::from_bits(a as u64).total_cmp(&f64::from_bits(b as u64)),
                _ if a == b => return Ordering::Equal,
                Type::Symbol => return self.text(a).cmp(self.text(b)),
                Type::Record(_) if a == NIL || b == NIL => return (a != NIL).cmp(&(b != NIL)),
                Type::Record(record) => {
                    let kinds = record.map_or(&[][..], |record| &records[record.0]);
                    let mut fields = kinds.iter().zip(self.fields(a).iter().zip(self.fields(b).iter()));
                    match fields.find(|(_, (x, y))| x != y) {
                        Some((field, (&x, &y))) => (kind, a, b) = (field, x, y),
                        None => return self.fields(a).len().cmp(&self.fields(b).len()),
                    }
                }
            }
        }
    }
}

//! Values. A column holds one machine word: a number itself, the bits of an unsigned or a float,
//! the number of an interned symbol or record.

use std::cmp::Ordering;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::Fault;

pub mod nesting;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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

    /// The number of a thing, if it has come.
    pub fn find(&self, thing: &T) -> Option<i64> {
        self.ids.get(thing).copied()
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

/// The place of a symbol that has not appeared.
const NOWHERE: i64 = -1;

/// The ordinals of symbols that have not appeared have this bit, which no number of symbols has.
const MADE: u64 = 1 << 62;

/// The interned symbols and records.
#[derive(Clone)]
pub struct Values {
    symbols: Interner<str>,
    records: Interner<[i64]>,
    /// The symbols of the program's text and of facts, in the order in which they first appeared there.
    appeared: Vec<i64>,
    /// By symbol its place among these, or `NOWHERE`.
    places: Vec<i64>,
    /// How many bytes they may take.
    pub most: usize,
}

impl Default for Values {
    fn default() -> Self {
        Values {
            symbols: Interner::default(),
            records: Interner::default(),
            appeared: Vec::new(),
            places: Vec::new(),
            most: usize::MAX,
        }
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

    /// The symbol of a text, if there is one.
    pub fn find(&self, text: &str) -> Option<i64> {
        self.symbols.find(text)
    }

    /// Note that the symbols in a value have appeared, from left to right.
    pub fn appear(&mut self, kind: &Type, records: &[Vec<Type>], word: i64) {
        match kind {
            Type::Symbol => {
                let symbol = word as usize;
                if self.places.len() <= symbol {
                    self.places.resize(self.symbols.things.len(), NOWHERE);
                }
                if self.places[symbol] == NOWHERE {
                    self.places[symbol] = self.appeared.len() as i64;
                    self.appeared.push(word);
                }
            }
            // As deep as what was read from Python.
            Type::Record(Some(record)) if word != NIL => {
                let fields = self.fields(word).clone();
                for (kind, &field) in records[record.0].iter().zip(fields.iter()) {
                    self.appear(kind, records, field);
                }
            }
            _ => {}
        }
    }

    /// The symbols that have appeared, in order.
    pub fn appeared(&self) -> &[i64] {
        &self.appeared
    }

    /// The number of a symbol by its first appearance. Other symbols have a hash of their text,
    /// which differs from all such numbers.
    pub fn ordinal(&self, symbol: i64) -> i64 {
        self.place(symbol).unwrap_or_else(|| made(self.text(symbol)))
    }

    fn place(&self, symbol: i64) -> Option<i64> {
        self.places.get(symbol as usize).copied().filter(|&place| place != NOWHERE)
    }

    /// The order in which symbols are chosen: first those that have appeared, in that order, then
    /// others by their text.
    pub fn by_appearance(&self, a: i64, b: i64) -> Ordering {
        match (self.place(a), self.place(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            (None, None) => self.text(a).cmp(self.text(b)),
            (a, b) => b.is_some().cmp(&a.is_some()),
        }
    }

    /// How many symbols there are.
    pub fn count(&self) -> usize {
        self.symbols.things.len()
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
    pub fn compare(&self, kind: &Type, records: &[Vec<Type>], a: i64, b: i64) -> Ordering {
        self.compare_by(kind, records, a, b, |a, b| self.text(a).cmp(self.text(b)))
    }

    /// The same with another order of symbols.
    pub fn compare_by<'t>(
        &self,
        mut kind: &'t Type,
        records: &'t [Vec<Type>],
        mut a: i64,
        mut b: i64,
        symbols: impl Fn(i64, i64) -> Ordering,
    ) -> Ordering {
        // A loop, as records nest as deep as they like. Equal values are equal words.
        loop {
            match kind {
                Type::Number => return a.cmp(&b),
                Type::Unsigned => return (a as u64).cmp(&(b as u64)),
                Type::Float => return f64::from_bits(a as u64).total_cmp(&f64::from_bits(b as u64)),
                _ if a == b => return Ordering::Equal,
                Type::Symbol => return symbols(a, b),
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

/// The ordinal of a text that no text of the program and no fact has: FNV-1a, the same everywhere.
pub fn made(text: &str) -> i64 {
    let digest = text.bytes().fold(0xCBF2_9CE4_8422_2325, |digest: u64, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    (digest & (MADE - 1) | MADE) as i64
}

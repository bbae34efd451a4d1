//! Values. A column holds one machine word: numbers as they are, unsigned and float as their bits, symbols
//! and records as numbers of interned texts and tuples.

use std::cmp::Ordering;
use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

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
pub const NIL: i64 = 0;

/// Numbers things in the order in which they first come.
pub struct Interner<T: ?Sized> {
    ids: FxHashMap<Arc<T>, i64>,
    things: Vec<Arc<T>>,
}

impl<T: ?Sized> Clone for Interner<T> {
    fn clone(&self) -> Self {
        Interner { ids: self.ids.clone(), things: self.things.clone() }
    }
}

impl<T: ?Sized> Default for Interner<T> {
    fn default() -> Self {
        Interner { ids: FxHashMap::default(), things: Vec::new() }
    }
}

impl<T: ?Sized + Hash + Eq> Interner<T> {
    /// The thing with this number.
    pub fn thing(&self, id: i64) -> Option<&Arc<T>> {
        self.things.get(usize::try_from(id).ok()?)
    }

    pub fn intern(&mut self, thing: &T) -> i64
    where
        Arc<T>: for<'a> From<&'a T>,
    {
        if let Some(&id) = self.ids.get(thing) {
            return id;
        }
        let id = self.things.len() as i64;
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
}

impl Default for Values {
    fn default() -> Self {
        let mut values = Values { symbols: Interner::default(), records: Interner::default() };
        values.records.intern(&[]); // nil takes number 0
        values
    }
}

impl Values {
    pub fn symbol(&mut self, text: &str) -> i64 {
        self.symbols.intern(text)
    }

    pub fn text(&self, symbol: i64) -> &Arc<str> {
        &self.symbols.things[symbol as usize]
    }

    pub fn record(&mut self, fields: &[i64]) -> i64 {
        self.records.intern(fields)
    }

    /// The fields of a record; none for nil.
    pub fn fields(&self, record: i64) -> &Arc<[i64]> {
        &self.records.things[record as usize]
    }

    /// The order of two values of a type: numbers by value, symbols by their text (code points), records
    /// field by field after nil.
    pub fn compare(&self, kind: &Type, records: &[Vec<Type>], a: i64, b: i64) -> Ordering {
        match kind {
            Type::Number => a.cmp(&b),
            Type::Unsigned => (a as u64).cmp(&(b as u64)),
            Type::Float => f64::from_bits(a as u64).total_cmp(&f64::from_bits(b as u64)),
            _ if a == b => Ordering::Equal,
            Type::Symbol => self.text(a).cmp(self.text(b)),
            Type::Record(record) => {
                let (left, right) = (self.fields(a), self.fields(b));
                let kinds = record.map_or(&[][..], |record| &records[record.0]);
                let orders = kinds.iter().zip(left.iter().zip(right.iter()));
                orders
                    .map(|(kind, (&x, &y))| self.compare(kind, records, x, y))
                    .find(|order| order.is_ne())
                    .unwrap_or(left.len().cmp(&right.len()))
            }
        }
    }
}

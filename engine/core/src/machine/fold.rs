//! Aggregates while their solutions come.

use crate::compile::step::{Aggregate, Function};
use crate::machine::functor::{float, float_word};
use crate::values::{Type, Values};

/// An aggregate so far.
#[derive(Clone, Copy, Default)]
pub struct Fold {
    pub count: u64,
    word: i64,
}

impl Fold {
    pub fn add(&mut self, aggregate: &Aggregate, word: i64, values: &Values) {
        let kind = &aggregate.kind;
        self.count += 1;
        self.word = match (aggregate.function, kind) {
            (Function::Count, _) => 0,
            (Function::Min | Function::Max, _) if self.count == 1 => word,
            (Function::Min, _) if values.compare(kind, &[], word, self.word).is_lt() => word,
            (Function::Max, _) if values.compare(kind, &[], word, self.word).is_gt() => word,
            (Function::Min | Function::Max, _) => self.word,
            (Function::Mean, Type::Number) => float_word(float(self.word) + word as f64),
            (Function::Mean, Type::Unsigned) => float_word(float(self.word) + word as u64 as f64),
            (Function::Sum | Function::Mean, Type::Float) => float_word(float(self.word) + float(word)),
            (Function::Sum | Function::Mean, _) => self.word.wrapping_add(word),
        };
    }

    /// The value of the aggregate; None where it has none.
    pub fn result(self, aggregate: &Aggregate) -> Option<i64> {
        match aggregate.function {
            Function::Count => Some(self.count as i64),
            Function::Sum => Some(self.word),
            Function::Min | Function::Max => (self.count > 0).then_some(self.word),
            Function::Mean => (self.count > 0).then(|| float_word(float(self.word) / self.count as f64)),
        }
    }
}

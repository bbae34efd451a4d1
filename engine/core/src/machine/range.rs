//! The numbers of `range`.

use crate::machine::functor::{float, float_word};
use crate::values::Type;

/// The numbers from a start to before an end, as words. With step 0 there is the start alone, unless it is the end.
#[derive(Clone, Copy)]
pub enum Numbers {
    /// The next one, the step, and how many are left.
    Integers { next: i64, step: i64, left: u64, unsigned: bool },
    /// The next one, if there is one, the end and the step. They end, too, where a step leads no further.
    Floats { next: Option<f64>, to: f64, step: f64 },
}

impl Numbers {
    /// Those of a type. Without a step each is one nearer to the end.
    pub fn new(kind: &Type, from: i64, to: i64, step: Option<i64>) -> Self {
        if *kind == Type::Float {
            let (from, to) = (float(from), float(to));
            let step = step.map_or(if to < from { -1.0 } else { 1.0 }, float);
            return Numbers::Floats { next: Some(from), to, step };
        }
        let unsigned = *kind == Type::Unsigned;
        let way = wide(to, unsigned) - wide(from, unsigned);
        let step = step.map_or(if way < 0 { -1 } else { 1 }, |step| wide(step, unsigned));
        let left = match step {
            0 => i128::from(way != 0),
            _ => (way + step - step.signum()) / step,
        };
        Numbers::Integers { next: from, step: step as i64, left: left.max(0) as u64, unsigned }
    }

    /// Whether a number is among them.
    pub fn has(mut self, word: i64) -> bool {
        let Numbers::Integers { next, step, left, unsigned } = self else {
            return self.any(|other| other == word);
        };
        if left <= 1 {
            return left == 1 && word == next;
        }
        let way = wide(word, unsigned) - wide(next, unsigned);
        let step = if way < 0 { i128::from(step) } else { wide(step, unsigned) };
        way % step == 0 && (0..i128::from(left)).contains(&(way / step))
    }
}

impl Iterator for Numbers {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        match self {
            Numbers::Integers { next, step, left, .. } => {
                *left = left.checked_sub(1)?;
                let word = *next;
                *next = word.wrapping_add(*step);
                Some(word)
            }
            Numbers::Floats { next, to, step } => {
                let number = next.take()?;
                let ahead = if *step > 0.0 { number < *to } else { number > *to };
                if if *step == 0.0 { number == *to || number.is_nan() && to.is_nan() } else { !ahead } {
                    return None;
                }
                let after = number + *step;
                *next = (*step != 0.0 && after != number).then_some(after);
                Some(float_word(number))
            }
        }
    }
}

/// A word as the number that it is.
fn wide(word: i64, unsigned: bool) -> i128 {
    if unsigned {
        i128::from(word as u64)
    } else {
        i128::from(word)
    }
}

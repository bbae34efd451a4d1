//! Tuples one behind the other, in 32 bits a word where all of them fit.

use crate::error::Fault;
use crate::relation::set::NONE;

/// Room for so many words is not kept for the next tuples.
const MANY: usize = 1 << 18;

/// The words of tuples.
#[derive(Clone)]
pub enum Rows {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

impl Default for Rows {
    fn default() -> Self {
        Rows::Narrow(Vec::new())
    }
}

/// A word in 32 bits. The least number is left out: packed keys need a word that is none.
#[inline]
pub fn narrow(word: i64) -> Option<i32> {
    i32::try_from(word).ok().filter(|&word| word != i32::MIN)
}

/// Two words in one.
#[inline]
pub fn pack(high: i32, low: i32) -> u64 {
    u64::from(high as u32) << 32 | u64::from(low as u32)
}

impl Rows {
    #[inline]
    pub fn word(&self, at: usize) -> i64 {
        match self {
            Rows::Narrow(words) => words[at].into(),
            Rows::Wide(words) => words[at],
        }
    }

    pub fn is_narrow(&self) -> bool {
        matches!(self, Rows::Narrow(_))
    }

    /// How many words there are.
    pub fn len(&self) -> usize {
        match self {
            Rows::Narrow(words) => words.len(),
            Rows::Wide(words) => words.len(),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Rows::Narrow(words) => words.capacity() * size_of::<i32>(),
            Rows::Wide(words) => words.capacity() * size_of::<i64>(),
        }
    }

    /// Make room for so many words more.
    pub fn reserve(&mut self, count: usize) -> Result<(), Fault> {
        let reserved = match self {
            Rows::Narrow(words) => words.try_reserve_exact(count),
            Rows::Wide(words) => words.try_reserve_exact(count),
        };
        reserved.map_err(|_| Fault::OutOfMemory)
    }

    pub fn clear(&mut self) {
        match self {
            Rows::Narrow(words) => words.clear(),
            Rows::Wide(words) => words.clear(),
        }
    }

    /// Free the room of empty rows, if it is large.
    pub fn release(&mut self) {
        match self {
            Rows::Narrow(words) if words.capacity() > MANY => *words = Vec::new(),
            Rows::Wide(words) if words.capacity() > MANY => *words = Vec::new(),
            _ => {}
        }
    }

    /// Make room for words of 64 bits.
    pub fn widen(&mut self) -> Result<(), Fault> {
        if let Rows::Narrow(words) = self {
            let mut wide = Vec::new();
            wide.try_reserve_exact(words.capacity()).map_err(|_| Fault::OutOfMemory)?;
            wide.extend(words.iter().map(|&word| i64::from(word)));
            *self = Rows::Wide(wide);
        }
        Ok(())
    }

    /// Add a tuple. In narrow rows every word has to be so.
    #[inline]
    pub fn push(&mut self, tuple: &[i64]) -> Result<(), Fault> {
        match self {
            Rows::Narrow(words) => {
                words.try_reserve(tuple.len()).map_err(|_| Fault::OutOfMemory)?;
                words.extend(tuple.iter().map(|&word| word as i32));
            }
            Rows::Wide(words) => {
                words.try_reserve(tuple.len()).map_err(|_| Fault::OutOfMemory)?;
                words.extend_from_slice(tuple);
            }
        }
        Ok(())
    }

    /// Add a tuple of any words.
    #[inline]
    pub fn put(&mut self, tuple: &[i64]) -> Result<(), Fault> {
        if !tuple.iter().all(|&word| narrow(word).is_some()) {
            self.widen()?;
        }
        self.push(tuple)
    }

    /// Keep only the first words, so many.
    pub fn truncate(&mut self, count: usize) {
        match self {
            Rows::Narrow(words) => {
                words.truncate(count);
                words.shrink_to_fit();
            }
            Rows::Wide(words) => {
                words.truncate(count);
                words.shrink_to_fit();
            }
        }
    }

    /// Delete rows of so many words, given in their order.
    pub fn delete(&mut self, arity: usize, gone: &[u32]) {
        match self {
            Rows::Narrow(words) => delete(words, arity, gone),
            Rows::Wide(words) => delete(words, arity, gone),
        }
    }

    /// Words of the same width, none yet, with room for so many.
    pub fn alike(&self, count: usize) -> Result<Rows, Fault> {
        let mut rows = match self {
            Rows::Narrow(_) => Rows::Narrow(Vec::new()),
            Rows::Wide(_) => Rows::Wide(Vec::new()),
        };
        rows.reserve(count)?;
        Ok(rows)
    }

    /// Add some of the words of others, which are as wide.
    #[inline]
    pub fn extend_from(&mut self, others: &Rows, from: usize, to: usize) {
        match (self, others) {
            (Rows::Narrow(words), Rows::Narrow(others)) => words.extend_from_slice(&others[from..to]),
            (Rows::Wide(words), Rows::Wide(others)) => words.extend_from_slice(&others[from..to]),
            _ => unreachable!("the widths differ"),
        }
    }

    /// Add packed tuples of one or two words, so many of them; some keys are `NONE`.
    pub fn extend_packed<'k>(
        &mut self,
        arity: usize,
        count: usize,
        runs: impl Iterator<Item = &'k [u64]>,
    ) -> Result<(), Fault> {
        match self {
            Rows::Narrow(words) => {
                // There is one place more, where those go that do not count.
                words.try_reserve((count + 1) * arity).map_err(|_| Fault::OutOfMemory)?;
                let start = words.len();
                words.resize(start + (count + 1) * arity, 0);
                let (free, mut at) = (&mut words[start..], 0);
                for &key in runs.flatten() {
                    if arity == 2 {
                        free[at..at + 2].copy_from_slice(&[(key >> 32) as i32, key as i32]);
                    } else {
                        free[at] = key as i32;
                    }
                    at += if key == NONE { 0 } else { arity };
                }
                words.truncate(start + at);
                Ok(())
            }
            Rows::Wide(_) => runs.flatten().filter(|&&key| key != NONE).try_for_each(|&key| {
                let tuple = [(key >> 32) as i32, key as i32].map(i64::from);
                self.push(&tuple[2 - arity..])
            }),
        }
    }

    /// Move all tuples of `other` behind these.
    pub fn append(&mut self, other: &mut Rows) -> Result<(), Fault> {
        if !other.is_narrow() {
            self.widen()?;
        }
        match (&mut *self, &mut *other) {
            (Rows::Narrow(words), Rows::Narrow(more)) => append(words, more)?,
            (Rows::Wide(words), Rows::Narrow(more)) => {
                words.try_reserve(more.len()).map_err(|_| Fault::OutOfMemory)?;
                words.extend(more.drain(..).map(i64::from));
            }
            (Rows::Wide(words), Rows::Wide(more)) => append(words, more)?,
            (Rows::Narrow(_), Rows::Wide(_)) => {} // widened above
        }
        Ok(())
    }
}

fn delete<W: Copy>(words: &mut Vec<W>, arity: usize, gone: &[u32]) {
    let mut end = gone.first().map_or(words.len(), |&row| row as usize * arity);
    for (i, &row) in gone.iter().enumerate() {
        let next = gone.get(i + 1).map_or(words.len(), |&row| row as usize * arity);
        let first = (row as usize + 1) * arity;
        words.copy_within(first..next, end);
        end += next - first;
    }
    words.truncate(end);
}

/// Move all words of `more` behind others. The fewer ones are copied, so that both lie beside each other for the least
/// memory.
fn append<W>(words: &mut Vec<W>, more: &mut Vec<W>) -> Result<(), Fault> {
    if words.len() >= more.len() {
        words.try_reserve(more.len()).map_err(|_| Fault::OutOfMemory)?;
        words.append(more);
    } else {
        more.try_reserve(words.len()).map_err(|_| Fault::OutOfMemory)?;
        more.splice(0..0, words.drain(..));
        *words = std::mem::take(more);
    }
    Ok(())
}

//! The values of variables that may be best: others cost no less than one of these, whatever the rest is.

use super::{lower, Rows, Table, LANES};
use super::{trees::Slot, Terms};

/// Which values of a variable are kept, in order; and for each value one that is kept and costs no more.
pub(super) struct Kept {
    pub(super) values: Vec<usize>,
    pub(super) instead: Vec<usize>,
}

impl Kept {
    /// The value that costs least, the first of those; `at` stays if none costs less.
    pub(super) fn best(&self, costs: &[f64], at: usize) -> usize {
        let values = self.values.iter();
        values.fold(at, |best, &value| if costs[value] < costs[best] { value } else { best })
    }
}

/// The values that are kept of each variable.
pub(super) fn kept(
    terms: &[Terms],
    alone: &Rows<f64>,
    size: &[f64],
    far: f64,
    slots: &[Vec<Slot>],
) -> Vec<Kept> {
    let apart: Vec<Vec<Rows<f64>>> =
        terms.iter().map(|term| term.tables.iter().map(most_apart).collect()).collect();
    let variables = slots.iter().enumerate().map(|(variable, slots)| {
        let costs = alone.row(variable);
        let known: Vec<usize> = (0..costs.len()).filter(|&value| costs[value] < far).collect();
        let mut worse = Rows { width: costs.len(), numbers: vec![0.0; costs.len() * costs.len()] };
        for &a in &known {
            for &b in &known {
                worse.numbers[a * costs.len() + b] = (costs[a] - costs[b]) * size[variable];
            }
        }
        for slot in slots {
            let (count, apart) = (terms[slot.term].counts[slot.row], &apart[slot.term][slot.slot]);
            for a in 0..apart.width {
                let row = &mut worse.numbers[a * costs.len()..][..apart.width];
                row.iter_mut().zip(apart.row(a)).for_each(|(worse, apart)| *worse += apart * count);
            }
        }
        select(&worse, known)
    });
    variables.collect()
}

/// By how much each value costs more than each other one at most, whatever way is taken.
fn most_apart(table: &Table) -> Rows<f64> {
    let count = table.values();
    let mut numbers = vec![0.0; count * count];
    for a in 0..count {
        for b in 0..a {
            (numbers[a * count + b], numbers[b * count + a]) = apart(table.costs.row(a), table.costs.row(b));
        }
    }
    Rows { width: count, numbers }
}

/// The most that one number is above another one at the same place, and the most that it is below.
fn apart(a: &[f64], b: &[f64]) -> (f64, f64) {
    let (mut above, mut below) = ([f64::INFINITY; LANES], [f64::INFINITY; LANES]);
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for lane in 0..LANES {
            // What is added to fill lines is infinite in both, and their difference is no number: it is not lower.
            above[lane] = lower(above[lane], b[lane] - a[lane]);
            below[lane] = lower(below[lane], a[lane] - b[lane]);
        }
    }
    (-above.into_iter().fold(f64::INFINITY, lower), -below.into_iter().fold(f64::INFINITY, lower))
}

/// Leaves out one value after the other that costs no less than one that is left; of equal ones the first stays.
fn select(worse: &Rows<f64>, known: Vec<usize>) -> Kept {
    let mut instead: Vec<usize> = (0..worse.width).collect();
    let mut values = known.clone();
    for value in known {
        let better = |&&other: &&usize| {
            let most = worse.row(other)[value];
            other != value && (most < 0.0 || (most == 0.0 && other < value))
        };
        if let Some(&other) = values.iter().find(better) {
            instead[value] = other;
            values.retain(|&kept| kept != value);
        }
    }
    for value in 0..instead.len() {
        while instead[instead[value]] != instead[value] {
            instead[value] = instead[instead[value]];
        }
    }
    Kept { values, instead }
}

//! Dominated values: those that never cost less than another value of the variable, whatever the other
//! variables are.

use super::{lower, Rows, Table, LANES};
use super::{trees::Slot, Terms};

/// The values of a variable that are kept, in order; and for each value a kept one that costs no more.
pub(super) struct Kept {
    pub(super) values: Vec<usize>,
    pub(super) instead: Vec<usize>,
}

impl Kept {
    /// The first of the cheapest values; `at` stays if none is cheaper.
    pub(super) fn best(&self, costs: &[f64], at: usize) -> usize {
        let values = self.values.iter();
        values.fold(at, |best, &value| if costs[value] < costs[best] { value } else { best })
    }
}

/// The kept values of each variable.
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

/// The most by which each value costs more than each other one, in any way.
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

/// The largest differences of numbers at the same place: up, and down.
fn apart(a: &[f64], b: &[f64]) -> (f64, f64) {
    let (mut above, mut below) = ([f64::INFINITY; LANES], [f64::INFINITY; LANES]);
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for lane in 0..LANES {
            // Padding of lines is infinite in both, so the difference is NaN, which is never lower.
            above[lane] = lower(above[lane], b[lane] - a[lane]);
            below[lane] = lower(below[lane], a[lane] - b[lane]);
        }
    }
    (-above.into_iter().fold(f64::INFINITY, lower), -below.into_iter().fold(f64::INFINITY, lower))
}

/// Drops, one by one, each value that never costs less than a remaining one; of equal ones the first stays.
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

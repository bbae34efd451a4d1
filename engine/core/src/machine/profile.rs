//! What rules take: time, and the tuples that they give, round by round.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::compile::step::Rule;

/// The time and tuples of one application of a rule. Round 0 of a stratum is for its rules that are
/// not recursive.
pub struct Record {
    pub source: usize,
    pub stratum: usize,
    pub round: usize,
    pub time: Duration,
    /// Tuples that were not there.
    pub new: usize,
}

/// What the steps of a rule in one order of its joins take, all applications together.
#[derive(Default)]
pub struct Counted {
    pub applied: usize,
    pub time: Duration,
    /// The tuples that were not there.
    pub new: usize,
    /// The rows after each step: as many as were expected, and as many as there were.
    pub expected: Vec<f64>,
    pub rows: Vec<u64>,
}

pub type Steps = BTreeMap<(usize, usize), Counted>;

/// The records of an evaluation, and where it is.
#[derive(Default)]
pub struct Profile {
    pub records: Vec<Record>,
    /// By the number of the rule in the plan and of its order, if someone asks.
    pub steps: Option<Steps>,
    stratum: usize,
    round: usize,
}

impl Profile {
    /// One that also has what the steps of rules take.
    pub fn of_steps() -> Self {
        Profile { steps: Some(Steps::new()), ..Profile::default() }
    }

    pub fn begin_stratum(&mut self, stratum: usize) {
        (self.stratum, self.round) = (stratum, 0);
    }

    pub fn begin_round(&mut self) {
        self.round += 1;
    }

    /// Add an application of a rule.
    pub fn count(&mut self, rule: &Rule, time: Duration, new: usize, expected: &[f64], rows: &[u64]) {
        let Some(steps) = &mut self.steps else { return };
        let counted = steps.entry((rule.number, rule.order)).or_default();
        counted.expected.resize(expected.len(), 0.0);
        counted.rows.resize(rows.len(), 0);
        counted.expected.iter_mut().zip(expected).for_each(|(sum, more)| *sum += more);
        counted.rows.iter_mut().zip(rows).for_each(|(sum, more)| *sum += more);
        counted.applied += 1;
        counted.time += time;
        counted.new += new;
    }

    pub fn note(&mut self, source: usize, time: Duration, new: usize) {
        self.records.push(Record { source, stratum: self.stratum, round: self.round, time, new });
    }
}

//! Proofs, searched backwards: from a tuple to its premises, by rules whose bodies are atoms,
//! negated atoms, and comparisons.
//!
//! The tuples of a relation are numbered in the order of their heights. A tuple's premises are
//! among those of lower height, which come first. Tuples of other rules are asked for.

mod body;
pub mod clause;
pub mod relation;

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use self::body::{Body, Ground, Memory};
use self::relation::{Origin, Relation, Tables};
use crate::error::Error;
use crate::values::Values;

/// How many tuples that aggregates go through a step has.
const COUNTED: usize = 1000;

/// What a tuple follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Fact,
    /// Not looked into: too far from the goal.
    Open,
    Asked,
    Clause(u32),
    /// Of an equivalence: pairs lead from one member to the other.
    Path,
}

pub struct Step {
    pub relation: u32,
    pub row: u32,
    pub how: How,
    distance: u32,
    /// Where its premises end. They begin where the premises of the step before end.
    pub end: u32,
}

/// The proof of a goal as far as it was found: its steps, nearer ones first.
pub struct Trace {
    relations: Vec<Relation>,
    pub steps: Vec<Step>,
    /// The numbers of steps.
    pub premises: Vec<u32>,
    /// The numbers of steps by relation and row.
    numbers: FxHashMap<(u32, u32), u32>,
    /// By relation the round that was asked for last.
    near: Vec<usize>,
    done: usize,
    memory: Memory,
}

impl Trace {
    pub fn new(mut relations: Vec<Relation>) -> Self {
        let counts: Vec<usize> = relations.iter().map(|relation| relation.count).collect();
        for relation in &mut relations {
            let Origin::Clauses { clauses, .. } = &mut relation.origin else { continue };
            clauses.iter_mut().for_each(|clause| clause.prepare(&counts));
        }
        let (numbers, near) = (FxHashMap::default(), vec![0; relations.len()]);
        let (steps, premises) = (Vec::new(), Vec::new());
        Trace { relations, steps, premises, numbers, near, done: 0, memory: Memory::default() }
    }

    /// Begin with another goal.
    pub fn start(&mut self, relation: u32, row: u32) {
        self.steps.clear();
        self.numbers.clear();
        self.premises.clear();
        self.done = 0;
        self.step(relation, row, 0);
    }

    /// Find the steps up to so many levels from the goal; stops at one that has to be asked for, and where it is
    /// `interrupted`.
    pub fn go(
        &mut self,
        tables: &Tables,
        values: &mut Values,
        depth: u32,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<usize>, Error> {
        self.memory.stopped = false;
        self.memory.found.clear();
        while let Some(&Step { relation, row, distance, .. }) = self.steps.get(self.done) {
            let near = &mut self.near[relation as usize];
            let height = self.relations[relation as usize].height(row as usize, near);
            let how = match height {
                Some(0) if self.relations[relation as usize].is_given(row) => How::Fact,
                _ if distance == depth => How::Open,
                None => return Ok(Some(self.done)),
                Some(height) => match self.derive((tables, interrupted), values, (relation, row), height) {
                    _ if self.memory.stopped => return Err(Error::Interrupted),
                    Some(how) => how,
                    None => return Ok(Some(self.done)),
                },
            };
            let found = std::mem::take(&mut self.memory.found);
            self.settle(how, &found);
            self.memory.found = found;
            self.memory.found.clear();
        }
        Ok(None)
    }

    /// Give the premises of the step that was asked for.
    pub fn answer(&mut self, premises: &[(u32, u32)]) {
        self.settle(How::Asked, premises);
    }

    fn settle(&mut self, how: How, premises: &[(u32, u32)]) {
        let step = self.done;
        let distance = self.steps[step].distance + 1;
        for &(relation, row) in premises {
            let number = self.step(relation, row, distance);
            self.premises.push(number);
        }
        self.steps[step].how = how;
        self.steps[step].end = self.premises.len() as u32;
        self.done += 1;
    }

    /// The number of the step of a tuple.
    fn step(&mut self, relation: u32, row: u32, distance: u32) -> u32 {
        *self.numbers.entry((relation, row)).or_insert_with(|| {
            self.steps.push(Step { relation, row, how: How::Open, distance, end: 0 });
            self.steps.len() as u32 - 1
        })
    }

    /// The first clause that derives a tuple from tuples below its height. Finds the tuples for its
    /// atoms.
    fn derive(
        &mut self,
        (tables, interrupted): (&Tables, &dyn Fn() -> bool),
        values: &mut Values,
        (relation, row): (u32, u32),
        height: i64,
    ) -> Option<How> {
        let (relations, row) = (&self.relations, row as usize);
        let ground = Ground { relations, tables, interrupted };
        let table = &tables[relation as usize];
        let Origin::Clauses { clauses, equivalence, .. } = &relations[relation as usize].origin else {
            return None;
        };
        let memory = &mut self.memory;
        for clause in clauses.iter().filter(|clause| height == 1 || height > 1 && clause.higher) {
            let mut body = Body::new(ground, clause, height, values, memory);
            let mut note = |body: &mut Body| {
                body.note(COUNTED);
                true
            };
            if body.bind(&clause.head, |column| Some(table[column].word(row))) && body.solve(&mut note) {
                return Some(How::Clause(clause.number));
            }
        }
        let equivalence = equivalence.as_ref()?;
        let pair = [table[0].word(row), table[1].word(row)];
        let links = |member| {
            let mut found: Vec<[i64; 2]> = equivalence.facts_of(table, member).collect();
            for column in [0, 1] {
                for clause in clauses.iter().filter(|_| height > 0) {
                    let mut body = Body::new(ground, clause, height, values, memory);
                    if body.bind(&clause.head, |at| (at == column).then_some(member)) {
                        body.solve(&mut |body| {
                            let pair = [0, 1].map(|at| body.word(&clause.head[at]));
                            found.extend(pair[0].zip(pair[1]).map(|(a, b)| [a, b]));
                            false
                        });
                    }
                }
            }
            found
        };
        let path = path(pair, links)?;
        let rows = path.iter().map(|pair| relations[relation as usize].row_of(table, *pair));
        let rows = rows.collect::<Option<Vec<u32>>>()?;
        self.memory.found.extend(rows.iter().map(|&row| (relation, row)));
        Some(How::Path)
    }
}

/// The shortest path of pairs from one member of a class to another; `links` has the pairs of a
/// member.
fn path([start, end]: [i64; 2], mut links: impl FnMut(i64) -> Vec<[i64; 2]>) -> Option<Vec<[i64; 2]>> {
    let mut before: FxHashMap<i64, (i64, [i64; 2])> = FxHashMap::default();
    let mut queue = VecDeque::from([start]);
    while !before.contains_key(&end) {
        let member = queue.pop_front()?;
        for pair in links(member) {
            let other = if pair[0] == member { pair[1] } else { pair[0] };
            before.entry(other).or_insert_with(|| {
                queue.push_back(other);
                (member, pair)
            });
        }
    }
    let (mut member, last) = before[&end];
    let mut path = vec![last];
    while member != start {
        let (previous, pair) = before[&member];
        path.push(pair);
        member = previous;
    }
    path.reverse();
    Some(path)
}

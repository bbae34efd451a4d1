//! The agenda: items take turns; a turn may give new content to cells, and then neighbours take turns again.
//!
//! The outcome of a turn depends on the static facts of the item and on the contents of its slots
//! alone. All of these are interned, so a turn is a look-up in a memo. Only new neighbourhoods are
//! solved.

pub mod facts;
pub mod graph;
pub mod solver;

use std::sync::Arc;
use std::time::Instant;

use rustc_hash::FxHashMap;

use crate::agenda::facts::{tuples, FactSet};
use crate::agenda::graph::Graph;
use crate::agenda::solver::Solver;
use crate::budget::Limits;
use crate::compile::step::RelationId;
use crate::error::Error;
use crate::program::{Program, StratumId};
use crate::relation::Tuples;
use crate::values::Interner;

/// An interned content of a cell; 0 is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentId(pub u32);

/// Interned facts of a class under a mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaticId(pub u32);

/// A state relation and the relation that holds its new tuples.
#[derive(Clone, Copy)]
pub struct State {
    pub now: RelationId,
    pub next: RelationId,
}

/// The new content of a slot.
#[derive(Clone, Copy)]
struct Change {
    slot: usize,
    content: ContentId,
}

/// A range of `Agenda::changes`.
#[derive(Clone, Copy)]
struct Outcome {
    start: u32,
    end: u32,
}

pub struct Agenda {
    state: Vec<State>,
    changed: RelationId,
    /// The state relations that the first content of a cell brings to its companions.
    spread: Vec<RelationId>,
    strata: Vec<StratumId>,
    statics: Interner<[i64]>,
    contents: Interner<[i64]>,
    memo: FxHashMap<Box<[u32]>, Outcome>,
    changes: Vec<Change>,
    /// The static facts and the contents of the item whose turn it is.
    key: Vec<u32>,
}

/// One stage: either every item once, or a stack of items that grows with every change.
pub struct Pass<'a> {
    pub worklist: bool,
    /// The items in the order of their turns.
    pub items: &'a [i32],
    /// For each class its static facts; -1: nothing to do.
    pub statics: &'a [i32],
}

#[derive(Clone, Copy, Default)]
pub struct Statistics {
    pub turns: usize,
    pub solved: usize,
    pub changes: usize,
    pub seconds: f64,
}

/// A change of a cell: pass, item, slot, place, old and new content.
pub type Entry = [i32; 6];

/// Turns between two reports of progress.
const REPORT: usize = 1 << 14;

/// Called with the pass and its number of turns so far.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize) -> Result<(), Error>;

/// The changing parts of a run.
struct Run<'a> {
    graph: &'a Graph<'a>,
    contents: &'a mut [i32],
    log: Vec<Entry>,
    stack: Vec<usize>,
    on_stack: Vec<bool>,
    /// The class of each item, and what `Retirement` counts of items and values.
    classes: Vec<i32>,
    keepers: Vec<i32>,
    waits: Vec<i32>,
    users: Vec<usize>,
}

/// Stands in `keepers` for an item that has retired.
const RETIRED: i32 = -2;

impl Agenda {
    /// `state` names the state relations and their successors, `changed` the relation of slots that change,
    /// `spread` the state relations that the first content of a cell brings to its companions.
    pub fn new(
        program: &Arc<Program>,
        mut state: Vec<State>,
        changed: RelationId,
        mut spread: Vec<RelationId>,
    ) -> Result<Self, Error> {
        let arity = |relation: RelationId| program.schema(relation).columns.len();
        for &State { now, next } in &state {
            if arity(now) == 0 || arity(now) != arity(next) {
                let (now, next) = (&program.schema(now).name, &program.schema(next).name);
                return Err(Error::Input(format!(
                    "`{now}` and `{next}` must have the same columns, a slot first"
                )));
            }
        }
        if arity(changed) != 1 {
            let name = &program.schema(changed).name;
            return Err(Error::Input(format!("`{name}` must have one column, the slot")));
        }
        state.sort_by_key(|state| state.now);
        spread.sort_unstable();
        let outputs: Vec<RelationId> = state.iter().map(|state| state.next).chain([changed]).collect();
        let mut contents = Interner::default();
        contents.intern(&[][..]);
        Ok(Agenda {
            strata: program.strata_of(&outputs),
            state,
            changed,
            spread,
            statics: Interner::default(),
            contents,
            memo: FxHashMap::default(),
            changes: Vec::new(),
            key: Vec::new(),
        })
    }

    /// The relations that a content may hold.
    pub fn is_state(&self, relation: RelationId) -> bool {
        self.state.iter().any(|state| state.now == relation)
    }

    pub fn intern_static(&mut self, facts: &FactSet) -> StaticId {
        StaticId(self.statics.intern(facts.words()) as u32)
    }

    pub fn intern_content(&mut self, facts: &FactSet) -> ContentId {
        ContentId(self.contents.intern(facts.words()) as u32)
    }

    /// The tuples of a content.
    pub fn content(&self, content: i32) -> Result<&[i64], Error> {
        words_of(&self.contents, content)
    }

    /// Fill the solver with a neighbourhood: static facts, and the contents of the slots.
    pub fn fill(
        &self,
        solver: &mut Solver,
        facts: i32,
        slots: impl Iterator<Item = i32>,
    ) -> Result<(), Error> {
        solver.clear();
        let missing = || Error::Input(format!("there is no set of static facts {facts}"));
        for (relation, tuple) in tuples(self.statics.thing(facts.into()).ok_or_else(missing)?) {
            solver.give(relation, tuple)?;
        }
        let mut held = Vec::new();
        for (slot, content) in slots.enumerate() {
            for (relation, tuple) in tuples(self.content(content)?) {
                held.clear();
                held.push(slot as i64);
                held.extend(tuple);
                solver.give(relation, &held)?;
            }
        }
        Ok(())
    }

    /// Run the passes one after the other; `contents` holds the content of each cell. Returns the changes in
    /// order and the statistics of each pass.
    pub fn run(
        &mut self,
        solver: &mut Solver,
        graph: &Graph,
        contents: &mut [i32],
        passes: &[Pass],
        limits: &Limits,
        progress: Progress,
    ) -> Result<(Vec<Entry>, Vec<Statistics>), Error> {
        let on_stack = vec![false; graph.classes.len()];
        let retirement = &graph.retirement;
        let mut run = Run {
            graph,
            contents,
            log: Vec::new(),
            stack: Vec::with_capacity(graph.classes.len()),
            on_stack,
            classes: graph.classes.to_vec(),
            keepers: retirement.keepers.to_vec(),
            waits: retirement.waits.to_vec(),
            users: (0..retirement.makers.len()).map(|value| retirement.users.row(value).len()).collect(),
        };
        let mut all = Vec::new();
        for (number, pass) in passes.iter().enumerate() {
            let (start, changes) = (Instant::now(), run.log.len());
            let mut statistics = Statistics::default();
            let mut order = pass.items.iter().map(|&item| item as usize);
            if pass.worklist {
                order.by_ref().rev().for_each(|item| run.push(item));
            }
            while let Some(item) = if pass.worklist { run.pop() } else { order.next() } {
                let Some(facts) = run.turn(item, pass) else { continue };
                statistics.turns += 1;
                if statistics.turns % REPORT == 0 {
                    progress(number, statistics.turns)?;
                }
                let outcome = self.outcome(facts, &run, item, solver, limits, &mut statistics)?;
                self.carry_out(outcome, &mut run, item, number, pass.worklist)?;
            }
            statistics.changes = run.log.len() - changes;
            statistics.seconds = start.elapsed().as_secs_f64();
            progress(number, statistics.turns)?;
            all.push(statistics);
        }
        Ok((run.log, all))
    }

    /// The changes of an item in a turn, from the memo or solved.
    fn outcome(
        &mut self,
        facts: StaticId,
        run: &Run,
        item: usize,
        solver: &mut Solver,
        limits: &Limits,
        statistics: &mut Statistics,
    ) -> Result<Outcome, Error> {
        self.key.clear();
        self.key.push(facts.0);
        self.key.extend(run.graph.slots.row(item).iter().map(|&place| run.content(place) as u32));
        if let Some(&outcome) = self.memo.get(self.key.as_slice()) {
            return Ok(outcome);
        }
        statistics.solved += 1;
        self.solve(solver, limits)
    }

    /// Store the new contents of an item's slots, and in a worklist push those who look at them.
    fn carry_out(
        &mut self,
        outcome: Outcome,
        run: &mut Run,
        item: usize,
        pass: usize,
        worklist: bool,
    ) -> Result<(), Error> {
        let graph = run.graph;
        let slots = graph.slots.row(item);
        for change in &self.changes[outcome.start as usize..outcome.end as usize] {
            let place = slots[change.slot];
            let cell = graph.cell(place);
            let (old, new) = (run.contents[cell], change.content.0 as i32);
            run.log.push([pass as i32, item as i32, change.slot as i32, place, old, new]);
            run.contents[cell] = new;
            if old == 0 && !graph.companions.row(cell).is_empty() {
                run.spread(cell, restricted(&mut self.contents, &self.spread, new)?);
            }
            if worklist {
                run.notify(item, place);
            }
        }
        Ok(())
    }

    /// Solve the neighbourhood in `key` and remember which slots it changes.
    fn solve(&mut self, solver: &mut Solver, limits: &Limits) -> Result<Outcome, Error> {
        let [facts, held @ ..] = self.key.as_slice() else {
            return Err(Error::Input("an empty neighbourhood".to_string()));
        };
        self.fill(solver, *facts as i32, held.iter().map(|&content| content as i32))?;
        solver.evaluate(&self.strata, limits)?;
        let mut slots: Vec<i64> = solver.tuples(self.changed).iter().map(|tuple| tuple[0]).collect();
        slots.sort_unstable();
        let start = self.changes.len() as u32;
        let wanted = if slots.is_empty() { &[][..] } else { &self.state };
        let next: Vec<Tuples> = wanted.iter().map(|state| solver.tuples(state.next)).collect();
        for slot in slots {
            let Some(&old) = usize::try_from(slot).ok().and_then(|slot| held.get(slot)) else {
                let name = &solver.program.schema(self.changed).name;
                let slots = held.len();
                return Err(Error::Input(format!(
                    "`{name}` holds slot {slot} of an item with {slots} slots"
                )));
            };
            let mut facts = FactSet::roomy();
            for (State { now, .. }, tuples) in self.state.iter().zip(&next) {
                let width = solver.program.schema(*now).columns.len() - 1;
                let tuples = tuples.iter().filter(|tuple| tuple[0] == slot).map(|tuple| &tuple[1..]);
                facts.add(*now, width, tuples);
            }
            let content = ContentId(self.contents.intern(facts.words()) as u32);
            if content.0 != old {
                self.changes.push(Change { slot: slot as usize, content });
            }
        }
        let outcome = Outcome { start, end: self.changes.len() as u32 };
        self.memo.insert(self.key.as_slice().into(), outcome);
        Ok(outcome)
    }
}

fn words_of(contents: &Interner<[i64]>, content: i32) -> Result<&[i64], Error> {
    let words = contents.thing(content.into());
    words.map(|words| &**words).ok_or_else(|| Error::Input(format!("there is no content {content}")))
}

/// The content that holds the facts of some relations in another, and no others.
fn restricted(
    contents: &mut Interner<[i64]>,
    relations: &[RelationId],
    content: i32,
) -> Result<ContentId, Error> {
    let mut facts = FactSet::default();
    let words = words_of(contents, content)?;
    for &wanted in relations {
        let held: Vec<&[i64]> = tuples(words).filter(|pair| pair.0 == wanted).map(|pair| pair.1).collect();
        facts.add(wanted, held.first().map_or(0, |tuple| tuple.len()), held.into_iter());
    }
    Ok(ContentId(contents.intern(facts.words()) as u32))
}

impl Run<'_> {
    /// Give the companions of a cell that have no content this one.
    fn spread(&mut self, cell: usize, content: ContentId) {
        for &companion in self.graph.companions.row(cell) {
            let held = &mut self.contents[companion as usize];
            if *held == 0 {
                *held = content.0 as i32;
            }
        }
    }

    fn content(&self, place: i32) -> i32 {
        self.contents[self.graph.cell(place)]
    }

    fn push(&mut self, item: usize) {
        if !self.on_stack[item] {
            self.on_stack[item] = true;
            self.stack.push(item);
        }
    }

    fn pop(&mut self) -> Option<usize> {
        let item = self.stack.pop()?;
        self.on_stack[item] = false;
        Some(item)
    }

    /// The static facts with which the item takes its turn in a pass; None where it has none. An item that
    /// nothing keeps retires when a worklist comes to it.
    fn turn(&mut self, item: usize, pass: &Pass) -> Option<StaticId> {
        if self.retires(item, pass.worklist) {
            return None;
        }
        u32::try_from(pass.statics[self.classes[item] as usize]).ok().map(StaticId)
    }

    fn retires(&mut self, item: usize, worklist: bool) -> bool {
        if worklist && self.keepers[item] == 0 {
            self.retire(item);
        }
        self.keepers[item] == RETIRED
    }

    fn retire(&mut self, item: usize) {
        if std::mem::replace(&mut self.keepers[item], RETIRED) == RETIRED {
            return;
        }
        let retirement = &self.graph.retirement;
        for &inner in retirement.inside.row(item) {
            self.retire(inner as usize);
        }
        for &value in retirement.uses.row(item) {
            let value = value as usize;
            self.users[value] -= 1;
            let left = self.users[value];
            let maker = usize::try_from(retirement.makers[value]).ok();
            if let Some(maker) = maker.filter(|&maker| left == 0 && self.keepers[maker] > 0) {
                self.keepers[maker] -= 1;
            }
            if left == 1 {
                let users = retirement.users.row(value).iter().map(|&user| user as usize);
                for only in users.filter(|&user| self.keepers[user] != RETIRED) {
                    self.waits[only] -= 1;
                    if self.waits[only] == 0 {
                        self.classes[only] = retirement.later[only];
                    }
                }
            }
            if let Some(maker) = maker.filter(|_| left <= 1) {
                self.push(maker);
            }
        }
    }

    /// Push the neighbours of a place that `actor` changed, then the neighbours of the other places
    /// of its cell.
    fn notify(&mut self, actor: usize, place: i32) {
        let graph = self.graph;
        let others = graph.cells.row(graph.cell(place)).iter().filter(|&&other| other != place);
        for &place in std::iter::once(&place).chain(others) {
            for &neighbour in graph.neighbours.row(place as usize) {
                if neighbour as usize != actor {
                    self.push(neighbour as usize);
                }
            }
        }
    }
}

//! Proofs, found backwards: from a tuple to those that it follows from, by rules whose bodies are atoms, denied ones,
//! and comparisons.
//!
//! The tuples of a relation are numbered in the order of their heights, so that those below a height come first: among
//! these a tuple's premises are looked for. What other rules give is asked for.

use std::sync::OnceLock;

use crate::compile::step::{Expression, Register};
use crate::error::Fault;
use crate::machine::functor::{Comparison, Functor};
use crate::values::{Type, Values, NIL};

/// The words of a column.
#[derive(Clone, Copy)]
pub enum Words<'a> {
    Narrow(&'a [i32]),
    Wide(&'a [i64]),
}

/// The columns of relations.
pub type Tables<'a> = [Vec<Words<'a>>];

/// So few rows are looked through without a look for fewer, or so small a share of a relation's.
const FEW: usize = 8;
const SHARE: usize = 256;

impl Words<'_> {
    #[inline]
    fn word(self, row: usize) -> i64 {
        match self {
            Words::Narrow(words) => words[row].into(),
            Words::Wide(words) => words[row],
        }
    }
}

#[derive(Clone)]
pub enum Term {
    /// A variable, and what is added to it.
    Variable(usize, i64),
    Word(i64),
    Any,
    Record(Box<[Term]>),
    /// What is computed of variables.
    Computed(Expression, Box<[usize]>),
}

/// A comparison and its variables.
pub struct Test {
    pub comparison: Comparison,
    pub kind: Type,
    pub sides: [Term; 2],
    pub variables: Box<[usize]>,
}

pub struct Atom {
    pub relation: usize,
    pub terms: Vec<Term>,
    keys: Vec<Key>,
}

/// By what else than its columns the tuples of an atom are found: what is in records, or computed of its variables.
struct Key {
    value: Expression,
    /// What it has to be.
    known: Term,
    /// By this value the rows that the atom may have.
    rows: OnceLock<(Vec<i64>, Groups)>,
}

impl Atom {
    pub fn new(relation: usize, terms: Vec<Term>) -> Self {
        Atom { relation, terms, keys: Vec::new() }
    }

    /// See by what it can be found besides.
    fn add_keys(&mut self, tests: &[Test]) {
        let (mut inner, mut variables) = (Vec::new(), Vec::new());
        for term in &self.terms {
            term.variables(if matches!(term, Term::Record(_)) { &mut inner } else { &mut variables });
        }
        variables.extend(&inner);
        let mut add = |value, known| self.keys.push(Key { value, known, rows: OnceLock::new() });
        for variable in inner {
            add(Expression::Register(Register(variable)), Term::Variable(variable, 0));
        }
        for test in tests.iter().filter(|test| test.comparison == Comparison::Equal) {
            let [left, right] = &test.sides;
            for (side, known) in [(left, right), (right, left)] {
                if let Term::Computed(value, used) = side {
                    if !used.is_empty() && used.iter().all(|variable| variables.contains(variable)) {
                        add(value.clone(), known.clone());
                    }
                }
            }
        }
    }
}

/// A rule. Only its tests compute, and equations among them give values to variables.
pub struct Clause {
    pub number: u32,
    pub head: Vec<Term>,
    pub body: Vec<Atom>,
    pub variables: usize,
    /// Whether what it gives follows from more than facts.
    pub higher: bool,
    pub tests: Vec<Test>,
    /// Of these no tuple may hold.
    pub denied: Vec<Atom>,
    /// The atoms, those of small relations first.
    pub order: Vec<usize>,
}

/// How the tuples of a relation are had.
pub enum Origin {
    Facts,
    /// By clauses. Heights are `offset` more than the numbers of rounds, which begin with the tuples `starts`.
    Clauses {
        starts: Vec<usize>,
        offset: i64,
        clauses: Vec<Clause>,
    },
    /// As someone else says.
    Asked,
}

pub struct Relation {
    pub count: usize,
    pub origin: Origin,
    groups: Vec<OnceLock<Groups>>,
}

impl Relation {
    pub fn new(width: usize, count: usize, origin: Origin) -> Self {
        Relation { count, origin, groups: (0..width).map(|_| OnceLock::new()).collect() }
    }

    /// The height of a tuple: 0 for facts. None where it is not known. `near` is the round of one that was asked for
    /// before: that of the next is often the one before.
    fn height(&self, row: usize, near: &mut usize) -> Option<i64> {
        match &self.origin {
            Origin::Facts => Some(0),
            Origin::Clauses { starts, offset, .. } => {
                let begun = |round: usize| round == 0 || starts[round - 1] <= row;
                *near -= usize::from(!begun(*near));
                if !begun(*near) || starts.get(*near).is_some_and(|&next| next <= row) {
                    *near = starts.partition_point(|&start| start <= row);
                }
                Some(*near as i64 + offset)
            }
            Origin::Asked => None,
        }
    }

    /// How many of the tuples are below a height.
    fn below(&self, height: i64) -> usize {
        match &self.origin {
            Origin::Facts => self.count,
            Origin::Clauses { starts, offset, .. } => match height - offset {
                round if round <= 0 => 0,
                round => starts.get(round as usize - 1).copied().unwrap_or(self.count),
            },
            Origin::Asked => 0,
        }
    }
}

/// The rows of a column by their words, ascending.
struct Groups {
    /// The least word and where the rows of each begin, unless words lie too far apart.
    dense: Option<(i64, Vec<u32>)>,
    rows: Vec<u32>,
}

impl Groups {
    fn new(words: Words) -> Self {
        match words {
            Words::Narrow(words) => Self::grouped(words, 0..words.len() as u32),
            Words::Wide(words) => Self::grouped(words, 0..words.len() as u32),
        }
    }

    /// Some rows, ascending, by their words.
    fn grouped<T: Copy + Ord + Into<i64>>(
        words: &[T],
        among: impl ExactSizeIterator<Item = u32> + Clone,
    ) -> Self {
        let word = |row: u32| -> i64 { words[row as usize].into() };
        let least = among.clone().map(word).min().unwrap_or(0);
        let span = among.clone().map(word).max().unwrap_or(0).wrapping_sub(least) as u64;
        if span > 4 * among.len() as u64 + 1024 {
            let mut rows: Vec<u32> = among.collect();
            rows.sort_by_key(|&row| words[row as usize]);
            return Groups { dense: None, rows };
        }
        let near = |row: u32| (word(row) - least) as usize;
        let mut starts = vec![0u32; span as usize + 2];
        among.clone().for_each(|row| starts[near(row) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let (mut next, mut rows) = (starts.clone(), vec![0; among.len()]);
        for row in among {
            let at = &mut next[near(row)];
            rows[*at as usize] = row;
            *at += 1;
        }
        Groups { dense: Some((least, starts)), rows }
    }

    fn of(&self, words: Words, word: i64) -> &[u32] {
        match &self.dense {
            Some((least, starts)) => {
                let near = word.checked_sub(*least).and_then(|near| usize::try_from(near).ok());
                match near.filter(|near| near + 1 < starts.len()) {
                    Some(near) => &self.rows[starts[near] as usize..starts[near + 1] as usize],
                    None => &[],
                }
            }
            None => {
                let first = self.rows.partition_point(|&row| words.word(row as usize) < word);
                let rows = &self.rows[first..];
                &rows[..rows.partition_point(|&row| words.word(row as usize) == word)]
            }
        }
    }
}

/// What a tuple follows from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Fact,
    /// Not looked into: too far from the goal.
    Open,
    Asked,
    Clause(u32),
}

pub struct Step {
    pub relation: u32,
    pub row: u32,
    pub how: How,
    distance: u32,
    /// Where its premises end, which begin where those of the step before end.
    pub end: u32,
}

/// The proof of a goal as far as it was found: its steps, nearer ones first.
pub struct Trace {
    relations: Vec<Relation>,
    pub steps: Vec<Step>,
    /// The numbers of steps.
    pub premises: Vec<u32>,
    /// By relation and row one more than the number of the step.
    numbers: Vec<Vec<u32>>,
    /// By relation the round that was asked for last.
    near: Vec<usize>,
    done: usize,
    memory: Memory,
}

/// What is known of the variables and the atoms of a clause while rows are looked for; kept from step to step for its
/// room.
#[derive(Default)]
struct Memory {
    values: Vec<Option<i64>>,
    rows: Vec<Option<u32>>,
    /// The variables that have a value, in the order in which they got it.
    bound: Vec<usize>,
    /// The words that the columns of the atoms that rows are looked for must have.
    known: Vec<(usize, i64)>,
    found: Vec<(u32, u32)>,
}

impl Trace {
    pub fn new(mut relations: Vec<Relation>) -> Self {
        let counts: Vec<usize> = relations.iter().map(|relation| relation.count).collect();
        for relation in &mut relations {
            let Origin::Clauses { clauses, .. } = &mut relation.origin else { continue };
            for Clause { body, order, tests, .. } in clauses {
                body.iter_mut().for_each(|atom| atom.add_keys(tests));
                *order = (0..body.len()).collect();
                order.sort_by_key(|&atom| counts[body[atom].relation]);
            }
        }
        let (numbers, near) = (vec![Vec::new(); relations.len()], vec![0; relations.len()]);
        let (steps, premises) = (Vec::new(), Vec::new());
        Trace { relations, steps, premises, numbers, near, done: 0, memory: Memory::default() }
    }

    /// Begin with another goal.
    pub fn start(&mut self, relation: u32, row: u32) {
        for step in self.steps.drain(..) {
            self.numbers[step.relation as usize][step.row as usize] = 0;
        }
        self.premises.clear();
        self.done = 0;
        self.step(relation, row, 0);
    }

    /// Find `most` steps more, up to so many levels from the goal; stops at one that has to be asked for.
    pub fn go(&mut self, tables: &Tables, values: &mut Values, depth: u32, most: usize) -> Option<usize> {
        for _ in 0..most {
            let Step { relation, row, distance, .. } = *self.steps.get(self.done)?;
            let near = &mut self.near[relation as usize];
            let height = self.relations[relation as usize].height(row as usize, near);
            let how = match height {
                Some(0) => How::Fact,
                _ if distance == depth => How::Open,
                None => return Some(self.done),
                Some(height) => match self.derive(tables, values, (relation, row), height) {
                    Some(clause) => How::Clause(clause),
                    None => return Some(self.done),
                },
            };
            let found = std::mem::take(&mut self.memory.found);
            self.settle(how, &found);
            self.memory.found = found;
            self.memory.found.clear();
        }
        None
    }

    /// Whether all steps are found.
    pub fn is_done(&self) -> bool {
        self.done == self.steps.len()
    }

    /// Say what the step follows from that was asked for.
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
        let numbers = &mut self.numbers[relation as usize];
        if numbers.is_empty() {
            *numbers = vec![0; self.relations[relation as usize].count.max(1)];
        }
        let number = &mut numbers[row as usize];
        if *number == 0 {
            self.steps.push(Step { relation, row, how: How::Open, distance, end: 0 });
            *number = self.steps.len() as u32;
        }
        *number - 1
    }

    /// The first clause that gives a tuple from what is below its height; finds the tuples that it takes for its atoms.
    fn derive(
        &mut self,
        tables: &Tables,
        values: &mut Values,
        (relation, row): (u32, u32),
        height: i64,
    ) -> Option<u32> {
        let (relations, row) = (&self.relations, row as usize);
        let table = &tables[relation as usize];
        let Origin::Clauses { clauses, .. } = &relations[relation as usize].origin else { return None };
        let memory = &mut self.memory;
        clauses.iter().filter(|clause| height == 1 || clause.higher).find_map(|clause| {
            memory.begin(clause);
            let mut body = Body { relations, tables, clause, height, values, memory, faulty: false };
            let fits = body.bind(&clause.head, |column| table[column].word(row)) && body.solve();
            fits.then(|| {
                let rows = clause.body.iter().zip(&memory.rows);
                memory.found.extend(rows.map(|(atom, row)| (atom.relation as u32, row.unwrap_or_default())));
                clause.number
            })
        })
    }
}

impl Memory {
    fn begin(&mut self, clause: &Clause) {
        self.values.clear();
        self.values.resize(clause.variables, None);
        self.rows.clear();
        self.rows.resize(clause.body.len(), None);
        self.bound.clear();
    }

    /// Forget the values of variables but for so many.
    fn undo(&mut self, before: usize) {
        for variable in self.bound.drain(before..) {
            self.values[variable] = None;
        }
    }
}

/// The body of a clause while rows are looked for, one for each atom.
struct Body<'a, 'm> {
    relations: &'a [Relation],
    tables: &'a Tables<'a>,
    clause: &'a Clause,
    height: i64,
    values: &'m mut Values,
    memory: &'m mut Memory,
    /// Something could not be computed: that waits until all atoms have rows, as others may exclude it.
    faulty: bool,
}

impl<'a> Body<'a, '_> {
    /// Find rows for the atoms that have none yet.
    fn solve(&mut self) -> bool {
        let clause = self.clause;
        let Some((at, rows)) = self.next() else {
            let faulty = std::mem::take(&mut self.faulty);
            return clause.denied.iter().all(|atom| self.is_absent(atom))
                && (!faulty || clause.tests.iter().all(|test| self.holds(test)) && !self.faulty);
        };
        let Atom { relation, terms, .. } = &clause.body[at];
        let (table, below) = (&self.tables[*relation], self.relations[*relation].below(self.height));
        let (before, first) = (self.memory.bound.len(), self.memory.known.len());
        for (column, term) in terms.iter().enumerate() {
            if let Some(word) = self.plain(term) {
                self.memory.known.push((column, word));
            }
        }
        let count = rows.map_or(below, <[u32]>::len);
        let mut solved = false;
        for number in 0..count {
            let row = rows.map_or(number, |rows| rows[number] as usize);
            if row >= below {
                break;
            }
            // Most rows that are no matches are seen here.
            let mut known = self.memory.known[first..].iter();
            if !known.all(|&(column, word)| table[column].word(row) == word) {
                continue;
            }
            self.memory.rows[at] = Some(row as u32);
            solved = self.bind(terms, |column| table[column].word(row)) && self.solve();
            if solved {
                break;
            }
            self.memory.undo(before);
        }
        self.memory.known.truncate(first);
        if !solved {
            self.memory.rows[at] = None;
        }
        solved
    }

    /// The atom that comes next, and its rows: that with the fewest, as far as they are looked at.
    fn next(&mut self) -> Option<(usize, Option<&'a [u32]>)> {
        let (clause, relations) = (self.clause, self.relations);
        let mut best: Option<(usize, Option<&[u32]>, usize)> = None;
        for &at in &clause.order {
            if self.memory.rows[at].is_some() {
                continue;
            }
            let atom = &clause.body[at];
            let rows = self.rows_of(atom);
            let count = rows.map_or(relations[atom.relation].count, <[u32]>::len);
            if best.is_none_or(|(_, _, least)| count < least) {
                best = Some((at, rows, count));
            }
            if count <= FEW {
                break;
            }
        }
        best.map(|(at, rows, _)| (at, rows))
    }

    /// Few rows among which all are that have the known words of an atom; None: every row.
    fn rows_of(&mut self, atom: &'a Atom) -> Option<&'a [u32]> {
        let relation = &self.relations[atom.relation];
        let few = FEW.max(relation.count / SHARE);
        let mut rows: Option<&[u32]> = None;
        for (column, term) in atom.terms.iter().enumerate() {
            let Some(word) = self.word(term) else { continue };
            let words = self.tables[atom.relation][column];
            let found = relation.groups[column].get_or_init(|| Groups::new(words)).of(words, word);
            if rows.is_none_or(|rows| found.len() < rows.len()) {
                rows = Some(found);
            }
            if found.len() <= few {
                return rows;
            }
        }
        for key in &atom.keys {
            let Some(word) = self.word(&key.known) else { continue };
            let (words, groups) = match key.rows.get() {
                Some(found) => found,
                None => {
                    let found = self.keyed(atom, key);
                    key.rows.get_or_init(|| found)
                }
            };
            let found = groups.of(Words::Wide(words), word);
            if rows.is_none_or(|rows| found.len() < rows.len()) {
                rows = Some(found);
            }
            if found.len() <= few {
                break;
            }
        }
        rows
    }

    /// The rows that an atom may have by the value of a key.
    fn keyed(&mut self, atom: &Atom, key: &Key) -> (Vec<i64>, Groups) {
        let (relations, tables, clause) = (self.relations, self.tables, self.clause);
        let mut memory = Memory::default();
        memory.begin(clause);
        let memory = &mut memory;
        let mut body =
            Body { relations, tables, clause, height: 0, values: self.values, memory, faulty: false };
        let (table, count) = (&tables[atom.relation], relations[atom.relation].count);
        let (mut words, mut rows) = (vec![0; count], Vec::new());
        for (row, word) in words.iter_mut().enumerate() {
            let mut terms = atom.terms.iter().zip(table);
            if terms.all(|(term, column)| body.fit(term, column.word(row))) {
                if let Ok(value) = body.computed(&key.value) {
                    *word = value;
                    rows.push(row as u32);
                }
            }
            body.memory.undo(0);
        }
        let groups = Groups::grouped(&words, rows.iter().copied());
        (words, groups)
    }

    /// Whether no tuple has the words of an atom, which are known.
    fn is_absent(&mut self, atom: &'a Atom) -> bool {
        let table = &self.tables[atom.relation];
        let words: Vec<Option<i64>> = atom.terms.iter().map(|term| self.word(term)).collect();
        if self.faulty {
            return false;
        }
        let has = |row: usize| {
            words.iter().zip(table).all(|(word, column)| word.is_none_or(|word| column.word(row) == word))
        };
        match self.rows_of(atom) {
            Some(rows) => !rows.iter().any(|&row| has(row as usize)),
            None => self.relations[atom.relation].count == 0,
        }
    }

    /// The word of a variable that is known, or of a constant.
    fn plain(&self, term: &Term) -> Option<i64> {
        match term {
            Term::Variable(variable, more) => {
                self.memory.values[*variable].map(|word| word.wrapping_add(*more))
            }
            Term::Word(word) => Some(*word),
            _ => None,
        }
    }

    /// The word of a term whose variables are known.
    fn word(&mut self, term: &Term) -> Option<i64> {
        match term {
            Term::Variable(..) | Term::Word(_) => self.plain(term),
            Term::Any => None,
            Term::Record(parts) => {
                let words = parts.iter().map(|part| self.word(part)).collect::<Option<Vec<_>>>()?;
                Some(self.values.record(&words))
            }
            Term::Computed(expression, variables) => {
                let known = variables.iter().all(|&variable| self.memory.values[variable].is_some());
                let word = known.then(|| self.computed(expression))?;
                self.faulty |= word.is_err();
                word.ok()
            }
        }
    }

    fn computed(&mut self, expression: &Expression) -> Result<i64, Fault> {
        match expression {
            Expression::Register(variable) => Ok(self.memory.values[variable.0].unwrap_or_default()),
            Expression::Word(word) => Ok(*word),
            Expression::Call(functor, kind, args) => {
                let mut words = [0; 3];
                for (word, arg) in words.iter_mut().zip(args) {
                    *word = self.computed(arg)?;
                }
                functor.apply(kind, words, self.values)
            }
            Expression::Record(args) => {
                let words = args.iter().map(|arg| self.computed(arg)).collect::<Result<Vec<_>, _>>()?;
                Ok(self.values.record(&words))
            }
        }
    }

    /// Whether terms may have the words of a row, and comparisons hold then.
    fn bind(&mut self, terms: &[Term], word: impl Fn(usize) -> i64) -> bool {
        let clause = self.clause;
        let mut before = self.memory.bound.len();
        let first = before == 0;
        if !terms.iter().enumerate().all(|(column, term)| self.fit(term, word(column))) {
            return false;
        }
        // Those of variables that are new, and once those without.
        let mut every = first;
        while every || before < self.memory.bound.len() {
            let end = self.memory.bound.len();
            for test in &clause.tests {
                let new = |variable: &usize| self.memory.bound[before..end].contains(variable);
                if (every || test.variables.iter().any(new)) && !self.holds(test) {
                    return false;
                }
            }
            (before, every) = (end, false);
        }
        true
    }

    /// Whether a comparison may hold. An equation gives values to variables on one side.
    fn holds(&mut self, test: &Test) -> bool {
        let [left, right] = &test.sides;
        match (self.word(left), self.word(right)) {
            (Some(a), Some(b)) => test.comparison.holds(&test.kind, a, b, self.values),
            (Some(word), None) if test.comparison == Comparison::Equal => self.fit(right, word),
            (None, Some(word)) if test.comparison == Comparison::Equal => self.fit(left, word),
            _ => true,
        }
    }

    /// Whether a term may have a word.
    fn fit(&mut self, term: &Term, word: i64) -> bool {
        match term {
            Term::Any => true,
            Term::Word(known) => *known == word,
            Term::Variable(variable, more) => {
                let value = &mut self.memory.values[*variable];
                if let Some(known) = value {
                    return known.wrapping_add(*more) == word;
                }
                *value = Some(word.wrapping_sub(*more));
                self.memory.bound.push(*variable);
                true
            }
            Term::Record(parts) => {
                if word == NIL {
                    return false;
                }
                let fields = self.values.fields(word).clone();
                parts.len() == fields.len()
                    && parts.iter().zip(fields.iter()).all(|(part, &field)| self.fit(part, field))
            }
            Term::Computed(expression, _) => match self.word(term) {
                Some(known) => known == word,
                None => self.solved(expression, word),
            },
        }
    }

    /// Give a value to the variable of a sum or a difference of integers whose other part is known, so that it has a
    /// word; anything else is seen to once more is known.
    fn solved(&mut self, expression: &Expression, word: i64) -> bool {
        let Expression::Call(functor, Type::Number | Type::Unsigned, args) = expression else { return true };
        let [left, right] = &args[..] else { return true };
        let known = |body: &mut Self, part: &Expression| match part {
            Expression::Register(variable) => body.memory.values[variable.0],
            Expression::Word(word) => Some(*word),
            _ => None,
        };
        let (variable, value) = match (functor, left, right, known(self, left), known(self, right)) {
            (Functor::Add, Expression::Register(variable), _, None, Some(other))
            | (Functor::Add, _, Expression::Register(variable), Some(other), None) => {
                (variable, word.wrapping_sub(other))
            }
            (Functor::Subtract, Expression::Register(variable), _, None, Some(other)) => {
                (variable, word.wrapping_add(other))
            }
            (Functor::Subtract, _, Expression::Register(variable), Some(other), None) => {
                (variable, other.wrapping_sub(word))
            }
            _ => return true,
        };
        self.memory.values[variable.0] = Some(value);
        self.memory.bound.push(variable.0);
        true
    }
}

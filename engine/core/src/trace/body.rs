//! The body of a rule while rows are looked for that make it hold.

use rustc_hash::FxHashSet;

use super::clause::{Aggregate, Atom, Clause, Key, Range, Term, Test};
use super::relation::{Groups, Relation, Tables, Words, WHOLE};
use crate::compile::step::Expression;
use crate::error::Fault;
use crate::machine::fold::Fold;
use crate::machine::functor::{Comparison, Functor};
use crate::machine::range::Numbers;
use crate::values::{Type, Values, NIL};

/// So few rows are looked through without a look for fewer, or so small a share of a relation's.
const FEW: usize = 8;
const SHARE: usize = 256;

/// The tuples of relations, and the flag that stops the search.
#[derive(Clone, Copy)]
pub struct Ground<'a> {
    pub relations: &'a [Relation],
    pub tables: &'a Tables<'a>,
    pub interrupted: &'a dyn Fn() -> bool,
}

/// Rows between two looks whether the search should stop.
const PATIENCE: u32 = 1 << 16;

/// What is known of the variables and the atoms of a clause while rows are looked for; kept from step to step for its
/// room.
#[derive(Default)]
pub struct Memory {
    pub values: Vec<Option<i64>>,
    /// The rows of the atoms, and behind them which of the ranges have been looked at.
    pub rows: Vec<Option<u32>>,
    /// The variables that have a value, in the order in which they got it.
    bound: Vec<usize>,
    /// The words that the columns of the atoms that rows are looked for must have.
    known: Vec<(usize, i64)>,
    pub found: Vec<(u32, u32)>,
    /// How many rows have been looked at since it was seen whether the search should stop, and whether it should.
    looked: u32,
    pub stopped: bool,
}

impl Memory {
    fn begin(&mut self, clause: &Clause) {
        self.values.clear();
        self.values.resize(clause.variables, None);
        self.rows.clear();
        self.rows.resize(clause.body.len() + clause.ranges.len(), None);
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
pub struct Body<'a, 'm> {
    ground: Ground<'a>,
    clause: &'a Clause,
    height: i64,
    values: &'m mut Values,
    memory: &'m mut Memory,
    /// Something could not be computed: that waits until all atoms have rows, as others may exclude it.
    faulty: bool,
}

impl<'a, 'm> Body<'a, 'm> {
    pub fn new(
        ground: Ground<'a>,
        clause: &'a Clause,
        height: i64,
        values: &'m mut Values,
        memory: &'m mut Memory,
    ) -> Self {
        memory.begin(clause);
        Body { ground, clause, height, values, memory, faulty: false }
    }

    /// Find rows for the atoms that have none yet, until `visit` is content with them.
    pub fn solve(&mut self, visit: &mut dyn FnMut(&mut Self) -> bool) -> bool {
        let clause = self.clause;
        let Some((at, rows)) = self.next() else {
            let (drawn, mut waiting) = (clause.body.len(), false);
            for (number, range) in clause.ranges.iter().enumerate() {
                if self.memory.rows[drawn + number].is_none() {
                    let words: Option<Vec<_>> = range.terms.iter().map(|term| self.word(term)).collect();
                    if let Some(words) = words {
                        self.memory.rows[drawn + number] = Some(0);
                        let solved = self.draw(range, &words, visit);
                        if !solved {
                            self.memory.rows[drawn + number] = None;
                        }
                        return solved;
                    }
                    waiting = true;
                }
            }
            if waiting {
                return false;
            }
            let faulty = std::mem::take(&mut self.faulty);
            let holds = clause.denied.iter().all(|atom| self.is_absent(atom))
                && (!faulty || clause.tests.iter().all(|test| self.holds(test)) && !self.faulty);
            self.faulty |= faulty;
            return holds && visit(self);
        };
        let Atom { relation, terms, .. } = &clause.body[at];
        let (table, below) =
            (&self.ground.tables[*relation], self.ground.relations[*relation].below(self.height));
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
            if row >= below || self.is_stopped() {
                break;
            }
            // Most rows that are no matches are seen here.
            let mut known = self.memory.known[first..].iter();
            if !known.all(|&(column, word)| table[column].word(row) == word) {
                continue;
            }
            self.memory.rows[at] = Some(row as u32);
            solved = self.bind(terms, |column| Some(table[column].word(row))) && self.solve(visit);
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

    /// Go on with each number of a range between these words.
    fn draw(&mut self, range: &Range, words: &[i64], visit: &mut dyn FnMut(&mut Self) -> bool) -> bool {
        let Range { variable, kind, .. } = range;
        let numbers = Numbers::new(kind, words[0], words[1], words.get(2).copied());
        let before = self.memory.bound.len();
        if let Some(word) = self.memory.values[*variable] {
            return numbers.has(word) && self.solve(visit);
        }
        for word in numbers {
            if self.is_stopped() {
                return false;
            }
            if self.bind(&[Term::Variable(*variable, 0)], |_| Some(word)) && self.solve(visit) {
                return true;
            }
            self.memory.undo(before);
        }
        false
    }

    /// Count a row that is looked at. Whether the search should stop.
    #[inline]
    fn is_stopped(&mut self) -> bool {
        self.memory.looked += 1;
        if self.memory.looked >= PATIENCE {
            self.memory.looked = 0;
            self.memory.stopped |= (self.ground.interrupted)();
        }
        self.memory.stopped
    }

    /// The next atom and its rows: the atom with the fewest rows, as far as they are looked at.
    fn next(&mut self) -> Option<(usize, Option<&'a [u32]>)> {
        let (clause, relations) = (self.clause, self.ground.relations);
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
        let relation = &self.ground.relations[atom.relation];
        let few = FEW.max(relation.count / SHARE);
        let mut rows: Option<&[u32]> = None;
        for (column, term) in atom.terms.iter().enumerate() {
            let Some(word) = self.word(term) else { continue };
            let words = self.ground.tables[atom.relation][column];
            let found = relation.rows(column, words, word);
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
            let found = groups.of(Words::Wide(words, 1), word);
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
        let Ground { relations, tables, .. } = self.ground;
        let mut memory = Memory::default();
        let mut body = Body::new(self.ground, self.clause, 0, self.values, &mut memory);
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
        let groups = Groups::grouped(Words::Wide(&words, 1), rows.iter().copied());
        (words, groups)
    }

    /// Whether no tuple has the words of an atom, which are known.
    fn is_absent(&mut self, atom: &'a Atom) -> bool {
        let table = &self.ground.tables[atom.relation];
        let words: Vec<Option<i64>> = atom.terms.iter().map(|term| self.word(term)).collect();
        if self.faulty {
            return false;
        }
        let has = |row: usize| {
            words.iter().zip(table).all(|(word, column)| word.is_none_or(|word| column.word(row) == word))
        };
        match self.rows_of(atom) {
            Some(rows) => !rows.iter().any(|&row| has(row as usize)),
            None => self.ground.relations[atom.relation].count == 0,
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
    pub fn word(&mut self, term: &Term) -> Option<i64> {
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
    pub fn bind(&mut self, terms: &[Term], word: impl Fn(usize) -> Option<i64>) -> bool {
        let clause = self.clause;
        let mut before = self.memory.bound.len();
        let first = before == 0;
        let mut given = terms.iter().enumerate().filter_map(|(column, term)| Some((term, word(column)?)));
        if !given.all(|(term, word)| self.fit(term, word)) {
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
            for aggregate in &clause.aggregates {
                let new = |variable: &usize| self.memory.bound[before..end].contains(variable);
                if (every || aggregate.outer.iter().any(new)) && !self.aggregated(aggregate) {
                    return false;
                }
            }
            (before, every) = (end, false);
        }
        true
    }

    /// Whether an aggregate may have its value, which it gives to its variable.
    fn aggregated(&mut self, aggregate: &'a Aggregate) -> bool {
        if aggregate.outer.iter().any(|&variable| self.memory.values[variable].is_none()) {
            return true;
        }
        let (mut fold, mut seen, mut faulty) = (Fold::default(), FxHashSet::default(), false);
        self.within(aggregate, &mut |body| {
            if aggregate.distinct && !seen.insert(body.memory.values.clone()) {
                return false;
            }
            match aggregate.fold.target.as_ref().map_or(Ok(0), |target| body.computed(target)) {
                Ok(word) => fold.add(&aggregate.fold, word, body.values),
                Err(_) => faulty = true,
            }
            faulty
        });
        let value = fold.result(&aggregate.fold).filter(|_| !faulty);
        !self.memory.stopped
            && value.is_some_and(|word| self.fit(&Term::Variable(aggregate.variable, 0), word))
    }

    /// Visit the solutions of the body of an aggregate, until one is enough.
    fn within(&mut self, aggregate: &'a Aggregate, visit: &mut dyn FnMut(&mut Body<'a, '_>) -> bool) {
        let mut memory = Memory { looked: self.memory.looked, ..Memory::default() };
        let mut body = Body::new(self.ground, &aggregate.body, WHOLE, self.values, &mut memory);
        for &variable in &aggregate.outer {
            body.memory.values[variable] = self.memory.values[variable];
        }
        if body.bind(&[], |_| None) {
            body.solve(&mut |body| visit(body));
        }
        self.memory.looked = memory.looked;
        self.memory.stopped |= memory.stopped;
    }

    /// Record the rows of the atoms as the answer, then up to `most` rows that aggregates go
    /// through.
    pub fn note(&mut self, most: usize) {
        for (atom, row) in self.clause.body.iter().zip(&self.memory.rows) {
            self.memory.found.push((atom.relation as u32, row.unwrap_or_default()));
        }
        let mut counted = Vec::new();
        for aggregate in &self.clause.aggregates {
            self.within(aggregate, &mut |body| {
                counted.extend(body.held());
                counted.len() >= most
            });
        }
        counted.truncate(most);
        let mut seen = FxHashSet::default();
        self.memory.found.extend(counted.into_iter().filter(|&row| seen.insert(row)));
    }

    /// The rows of the atoms.
    fn held(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let rows = self.clause.body.iter().zip(&self.memory.rows);
        rows.map(|(atom, row)| (atom.relation as u32, row.unwrap_or_default()))
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

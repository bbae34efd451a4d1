//! Proofs, found backwards: from a tuple to those that it follows from, by rules whose bodies are atoms, denied ones,
//! and comparisons of words.
//!
//! The tuples of a relation are numbered in the order of their heights, so that those below a height come first: among
//! these a tuple's premises are looked for. What other rules give is asked for.

use std::cmp::Ordering;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;

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

#[derive(Clone, Copy)]
pub enum Term {
    /// A variable, and what is added to it.
    Variable(usize, i64),
    Word(i64),
    Any,
}

/// A comparison: which orders of its sides it holds for, and whether they are signed.
pub struct Test {
    pub orders: Vec<Ordering>,
    pub signed: bool,
    pub sides: [Term; 2],
}

pub struct Atom {
    pub relation: usize,
    pub terms: Vec<Term>,
}

pub struct Clause {
    pub number: usize,
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

    /// The height of a tuple: 0 for facts. None where it is not known.
    fn height(&self, row: usize) -> Option<i64> {
        match &self.origin {
            Origin::Facts => Some(0),
            Origin::Clauses { starts, offset, .. } => {
                Some(starts.partition_point(|&start| start <= row) as i64 + offset)
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
            Words::Narrow(words) => Self::grouped(words),
            Words::Wide(words) => Self::grouped(words),
        }
    }

    fn grouped<T: Copy + Ord + Into<i64>>(words: &[T]) -> Self {
        let (least, most) = (words.iter().min(), words.iter().max());
        let (least, most) = (least.map_or(0, |&word| word.into()), most.map_or(0, |&word| word.into()));
        let span = most.wrapping_sub(least) as u64;
        if span > 4 * words.len() as u64 + 1024 {
            let mut rows: Vec<u32> = (0..words.len() as u32).collect();
            rows.sort_by_key(|&row| words[row as usize]);
            return Groups { dense: None, rows };
        }
        let near = |&word: &T| (word.into() - least) as usize;
        let mut starts = vec![0u32; span as usize + 2];
        words.iter().for_each(|word| starts[near(word) + 1] += 1);
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let (mut next, mut rows) = (starts.clone(), vec![0; words.len()]);
        for (row, word) in words.iter().enumerate() {
            let at = &mut next[near(word)];
            rows[*at as usize] = row as u32;
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
    Clause(usize),
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
    numbers: FxHashMap<(u32, u32), u32>,
    done: usize,
}

impl Trace {
    pub fn new(mut relations: Vec<Relation>) -> Self {
        let counts: Vec<usize> = relations.iter().map(|relation| relation.count).collect();
        for relation in &mut relations {
            let Origin::Clauses { clauses, .. } = &mut relation.origin else { continue };
            for Clause { body, order, .. } in clauses {
                *order = (0..body.len()).collect();
                order.sort_by_key(|&atom| counts[body[atom].relation]);
            }
        }
        Trace { relations, steps: Vec::new(), premises: Vec::new(), numbers: FxHashMap::default(), done: 0 }
    }

    /// Begin with another goal.
    pub fn start(&mut self, relation: u32, row: u32) {
        (self.steps, self.premises, self.done) = (Vec::new(), Vec::new(), 0);
        self.numbers = FxHashMap::default();
        self.step(relation, row, 0);
    }

    /// Find `most` steps more, up to so many levels from the goal; stops at one that has to be asked for.
    pub fn go(&mut self, tables: &Tables, depth: u32, most: usize) -> Option<usize> {
        let mut found = Vec::new();
        for _ in 0..most {
            let Step { relation, row, distance, .. } = *self.steps.get(self.done)?;
            let height = self.relations[relation as usize].height(row as usize);
            let how = if height == Some(0) {
                How::Fact
            } else if distance == depth {
                How::Open
            } else {
                match height
                    .and_then(|height| derive(&self.relations, tables, (relation, row), height, &mut found))
                {
                    Some(clause) => How::Clause(clause),
                    None => return Some(self.done),
                }
            };
            self.settle(how, &found);
            found.clear();
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
        let Trace { steps, numbers, .. } = self;
        *numbers.entry((relation, row)).or_insert_with(|| {
            steps.push(Step { relation, row, how: How::Open, distance, end: 0 });
            steps.len() as u32 - 1
        })
    }
}

/// The first clause that gives a tuple from what is below its height, and the tuples that it takes for its atoms.
fn derive(
    relations: &[Relation],
    tables: &Tables,
    (relation, row): (u32, u32),
    height: i64,
    found: &mut Vec<(u32, u32)>,
) -> Option<usize> {
    let (relation, row) = (relation as usize, row as usize);
    let Origin::Clauses { clauses, .. } = &relations[relation].origin else { return None };
    clauses.iter().filter(|clause| height == 1 || clause.higher).find_map(|clause| {
        let mut body = Body {
            relations,
            tables,
            clause,
            height,
            values: vec![None; clause.variables],
            rows: vec![None; clause.body.len()],
        };
        let word = |column: usize| tables[relation][column].word(row);
        let fits = body.bind(&clause.head, word, &mut Vec::new()) && body.solve();
        fits.then(|| {
            let rows = clause.body.iter().zip(&body.rows);
            found.extend(rows.map(|(atom, row)| (atom.relation as u32, row.unwrap_or_default())));
            clause.number
        })
    })
}

/// The body of a clause while rows are looked for, one for each atom.
struct Body<'a> {
    relations: &'a [Relation],
    tables: &'a Tables<'a>,
    clause: &'a Clause,
    height: i64,
    values: Vec<Option<i64>>,
    rows: Vec<Option<u32>>,
}

impl<'a> Body<'a> {
    /// Find rows for the atoms that have none yet.
    fn solve(&mut self) -> bool {
        let Some((at, rows)) = self.next() else {
            return self.clause.denied.iter().all(|atom| self.is_absent(atom));
        };
        let Atom { relation, terms } = &self.clause.body[at];
        let (table, below) = (&self.tables[*relation], self.relations[*relation].below(self.height));
        let mut bound = Vec::new();
        let count = rows.map_or(below, <[u32]>::len);
        for number in 0..count {
            let row = rows.map_or(number, |rows| rows[number] as usize);
            if row >= below {
                break;
            }
            self.rows[at] = Some(row as u32);
            if self.bind(terms, |column| table[column].word(row), &mut bound) && self.solve() {
                return true;
            }
            bound.drain(..).for_each(|variable: usize| self.values[variable] = None);
        }
        self.rows[at] = None;
        false
    }

    /// The atom that comes next, and its rows: that with the fewest, as far as they are looked at.
    fn next(&self) -> Option<(usize, Option<&'a [u32]>)> {
        let mut best: Option<(usize, Option<&[u32]>, usize)> = None;
        for &at in self.clause.order.iter().filter(|&&at| self.rows[at].is_none()) {
            let atom = &self.clause.body[at];
            let rows = self.rows_of(atom);
            let count = rows.map_or(self.relations[atom.relation].count, <[u32]>::len);
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
    fn rows_of(&self, atom: &Atom) -> Option<&'a [u32]> {
        let relation = &self.relations[atom.relation];
        let mut rows: Option<&[u32]> = None;
        for (column, term) in atom.terms.iter().enumerate() {
            let Some(word) = self.word(*term) else { continue };
            let words = self.tables[atom.relation][column];
            let found = relation.groups[column].get_or_init(|| Groups::new(words)).of(words, word);
            if rows.is_none_or(|rows| found.len() < rows.len()) {
                rows = Some(found);
            }
            if found.len() <= FEW.max(relation.count / SHARE) {
                break;
            }
        }
        rows
    }

    /// Whether no tuple has the words of an atom, which are known.
    fn is_absent(&self, atom: &Atom) -> bool {
        let table = &self.tables[atom.relation];
        let has = |row: usize| {
            let mut terms = atom.terms.iter().zip(table);
            terms.all(|(term, words)| self.word(*term).is_none_or(|word| words.word(row) == word))
        };
        match self.rows_of(atom) {
            Some(rows) => !rows.iter().any(|&row| has(row as usize)),
            None => self.relations[atom.relation].count == 0,
        }
    }

    fn word(&self, term: Term) -> Option<i64> {
        match term {
            Term::Variable(variable, more) => self.values[variable].map(|word| word.wrapping_add(more)),
            Term::Word(word) => Some(word),
            Term::Any => None,
        }
    }

    /// Whether terms may have the words of a row, and comparisons hold then; `bound` are the variables that get a
    /// value.
    fn bind(&mut self, terms: &[Term], word: impl Fn(usize) -> i64, bound: &mut Vec<usize>) -> bool {
        let fits = terms.iter().enumerate().all(|(column, &term)| self.fit(term, word(column), bound));
        let mut before = usize::MAX;
        while fits && before != bound.len() {
            before = bound.len();
            if !self.clause.tests.iter().all(|test| self.holds(test, bound)) {
                return false;
            }
        }
        fits
    }

    /// Whether a comparison may hold. An equation gives a value to a variable on one side.
    fn holds(&mut self, test: &Test, bound: &mut Vec<usize>) -> bool {
        let [left, right] = test.sides;
        match (self.word(left), self.word(right)) {
            (Some(a), Some(b)) => {
                test.orders.contains(&if test.signed { a.cmp(&b) } else { (a as u64).cmp(&(b as u64)) })
            }
            (Some(word), None) if test.orders == [Ordering::Equal] => self.fit(right, word, bound),
            (None, Some(word)) if test.orders == [Ordering::Equal] => self.fit(left, word, bound),
            _ => true,
        }
    }

    /// Whether a term may have a word.
    fn fit(&mut self, term: Term, word: i64, bound: &mut Vec<usize>) -> bool {
        match (term, self.word(term)) {
            (_, Some(known)) => known == word,
            (Term::Variable(variable, more), None) => {
                self.values[variable] = Some(word.wrapping_sub(more));
                bound.push(variable);
                true
            }
            _ => true,
        }
    }
}

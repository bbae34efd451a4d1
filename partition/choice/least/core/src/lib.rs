//! Sums of terms over variables with a few values each, and the messages that search for the least.
//!
//! A term costs as much as the cheapest of its ways. Each way has a cost of its own, and a cost for the value
//! of each of the term's variables. Ways that need the same of a variable share a line of its table. There
//! are few lines, and most work is done once per line. Terms with equal tables are computed together, as
//! rows. A row may stand for many equal terms, and a variable for many equal ones.

mod kept;
#[cfg(feature = "python")]
mod python;
mod trees;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use kept::Kept;
use trees::Grown;

/// The arguments do not fit the sum: a bug of the caller.
#[derive(Debug, PartialEq, Eq)]
pub struct Error(pub String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl std::error::Error for Error {}

/// Lines are padded to a multiple of this, which a processor compares at once. Padding costs infinity.
const LANES: usize = 4;
/// The most repetitions of a message from many in a sweep.
const REPEATS: usize = 32;

/// Rows of numbers, end to end.
pub struct Rows<T> {
    pub width: usize,
    pub numbers: Vec<T>,
}

impl<T> Rows<T> {
    pub fn row(&self, row: usize) -> &[T] {
        &self.numbers[row * self.width..][..self.width]
    }

    fn count(&self) -> usize {
        self.numbers.len() / self.width
    }
}

/// Terms with equal tables, as input: the cost of each way (`base`); for each slot the line of each way, and
/// the cost of each value of its variable (`tables`, line by value); the variables of each row; and the
/// number of terms that a row stands for.
pub struct Given {
    pub base: Vec<f64>,
    pub lines: Vec<Vec<usize>>,
    pub tables: Vec<Rows<f64>>,
    pub variables: Rows<usize>,
    pub counts: Vec<f64>,
}

/// The costs of ways by one variable.
struct Table {
    /// The cost of each line, value by line.
    costs: Rows<f64>,
    /// The line of each way.
    lines: Vec<usize>,
    /// The start of its messages in a row's, and of its lines in those of all slots.
    message: usize,
    line: usize,
}

impl Table {
    fn values(&self) -> usize {
        self.costs.count()
    }

    /// Adds to each way the cost of its line.
    fn add(&self, to: &mut [f64], lines: &[f64]) {
        to.iter_mut().zip(&self.lines).for_each(|(to, &line)| *to += lines[line]);
    }

    /// The cost of each line at the best of some values, each of which costs `more` on its own.
    fn at_best(&self, values: &[usize], mut more: impl FnMut(usize) -> f64, found: &mut [f64]) {
        found.fill(f64::INFINITY);
        for &value in values {
            let more = more(value);
            let costs = found.iter_mut().zip(self.costs.row(value));
            costs.for_each(|(found, cost)| *found = lower(*found, cost + more));
        }
    }

    /// The least cost of the ways of each line; `lines` are their costs with that of the line.
    fn least(&self, total: &[f64], lines: &[f64], found: &mut Vec<f64>) {
        found.clear();
        found.resize(self.costs.width, f64::INFINITY);
        for (total, &line) in total.iter().zip(&self.lines) {
            found[line] = lower(found[line], total - lines[line]);
        }
    }
}

/// `Given`, prepared for computation.
struct Terms {
    base: Vec<f64>,
    /// One for each slot.
    tables: Vec<Table>,
    variables: Rows<usize>,
    counts: Vec<f64>,
    /// By row and slot: how often a variable receives a message, because `counts` and `size` differ.
    often: Rows<f64>,
    /// By row and slot: the part of a change that is sent. A row that stands for several terms with a common
    /// variable sends all of their messages at once, so each changes by less.
    part: Rows<f64>,
    /// The messages of each row to the values of its variables, slot by slot.
    messages: Rows<f64>,
}

/// How rows send messages.
#[derive(Clone, Copy)]
pub struct Saying {
    /// The part of a change that is sent at once.
    pub step: f64,
    /// None: a row sends its full message to each of its variables (min-sum: exact on trees, and good
    /// elsewhere). Otherwise its variables share the message, and the bound rises. A variable without later
    /// rows gets `left` for each part of the others. If `left` is small, later rows carry nearly all on
    /// (sequential reweighted message passing); if it is 1, all shares are equal (MPLP).
    pub left: Option<f64>,
}

/// How rows send messages, and about which values: those that are `kept`, none of which costs more than
/// `far`.
struct How<'a> {
    saying: Saying,
    kept: &'a [Kept],
    far: f64,
}

/// Buffers for the computation of a row.
#[derive(Default)]
struct Scratch {
    /// The costs of values by all other rows, slot by slot.
    heard: Vec<f64>,
    /// The cost of each line at the best value, slot by slot.
    best: Vec<f64>,
    /// The cost of each way.
    total: Vec<f64>,
    /// The cost of the best way of each line of a slot, without the line itself.
    rest: Vec<f64>,
    /// The row's message to the values of a variable.
    said: Vec<f64>,
    /// The share of each variable.
    shares: Vec<f64>,
}

impl Terms {
    fn new(given: Given, size: &[f64], most: usize) -> Result<Self, Error> {
        let Given { base, lines, tables, variables, counts } = given;
        let (ways, rows) = (base.len(), counts.len());
        let fits = lines.iter().zip(&tables).all(|(lines, table)| {
            let known = table.numbers.len() / table.width.max(1);
            (1..=most).contains(&table.width) && lines.len() == ways && lines.iter().all(|&line| line < known)
        });
        let known = variables.numbers.iter().all(|&variable| variable < size.len());
        if ways == 0
            || tables.is_empty()
            || lines.len() != tables.len()
            || variables.width != tables.len()
            || variables.numbers.len() != rows * tables.len()
        {
            return Err(Error("a term needs ways, a table for each slot and a count for each row".into()));
        }
        if !fits || !known {
            return Err(Error("a term has lines, values or variables that there are not".into()));
        }
        let (mut message, mut line) = (0, 0);
        let tables = lines.into_iter().zip(&tables).map(|(lines, table)| {
            let table = Table { costs: by_value(table), lines, message, line };
            message += table.values();
            line += table.costs.width;
            table
        });
        let tables: Vec<_> = tables.collect();
        let width = message;
        let by_slot = |of: &dyn Fn(&[usize], usize, f64) -> f64| {
            let rows = variables.numbers.chunks(tables.len()).zip(&counts);
            let numbers = rows.flat_map(|(row, &count)| row.iter().map(move |&slot| of(row, slot, count)));
            Rows { width: tables.len(), numbers: numbers.collect() }
        };
        let often = by_slot(&|_, variable, count| count / size[variable]);
        let part = by_slot(&|row, variable, count| {
            let slots = row.iter().filter(|&&other| other == variable).count();
            1.0 / (slots as f64 * count / size[variable]).max(1.0)
        });
        Ok(Terms {
            messages: Rows { width, numbers: vec![0.0; rows * width] },
            base,
            tables,
            variables,
            counts,
            often,
            part,
        })
    }

    /// For each slot of a row: its table, its variable, and the place of its messages.
    fn slots(&self, row: usize) -> impl Iterator<Item = (&Table, usize, std::ops::Range<usize>)> {
        let first = row * self.messages.width;
        self.variables.row(row).iter().zip(&self.tables).map(move |(&variable, table)| {
            let start = first + table.message;
            (table, variable, start..start + table.values())
        })
    }

    /// The cost of each way of a row for a choice of values.
    fn costs(&self, row: usize, chosen: &[usize], total: &mut Vec<f64>) {
        total.clone_from(&self.base);
        for (table, variable, _) in self.slots(row) {
            table.add(total, table.costs.row(chosen[variable]));
        }
    }

    /// A row sends the cost of its best way for each kept value, given the messages of the others: it reads
    /// `beliefs`, and then updates them.
    fn tell(&mut self, row: usize, beliefs: &mut Rows<f64>, how: &How, scratch: &mut Scratch) {
        self.listen(row, beliefs, how.kept, scratch);
        for slot in 0..self.tables.len() {
            self.speak(row, slot, beliefs, how, scratch);
        }
    }

    /// The messages of others to the variables of a row, and the costs of its ways by them.
    fn listen(&self, row: usize, beliefs: &Rows<f64>, kept: &[Kept], scratch: &mut Scratch) {
        scratch.heard.resize(self.messages.width, 0.0);
        scratch.best.clear();
        scratch.total.clone_from(&self.base);
        for (table, variable, place) in self.slots(row) {
            scratch.best.resize(table.line + table.costs.width, 0.0);
            let (said, best) = (&self.messages.numbers[place], &mut scratch.best[table.line..]);
            let (belief, heard) = (beliefs.row(variable), &mut scratch.heard[table.message..]);
            let hear = |value: usize| {
                heard[value] = belief[value] - said[value];
                heard[value]
            };
            table.at_best(&kept[variable].values, hear, best);
            table.add(&mut scratch.total, best);
        }
    }

    /// A row sends its message to the variable of a slot.
    fn speak(&mut self, row: usize, slot: usize, beliefs: &mut Rows<f64>, how: &How, scratch: &mut Scratch) {
        let (table, variable) = (&self.tables[slot], self.variables.row(row)[slot]);
        let (values, heard) = (&how.kept[variable].values, &scratch.heard[table.message..]);
        table.least(&scratch.total, &scratch.best[table.line..], &mut scratch.rest);
        let said = &mut scratch.said;
        said.resize(beliefs.width, 0.0);
        for &value in values {
            said[value] = least(&scratch.rest, table.costs.row(value));
        }
        if how.saying.left.is_some() {
            let share = scratch.shares[slot];
            values.iter().for_each(|&n| said[n] = (said[n] + heard[n]) * share - heard[n]);
        } else {
            let low = values.iter().map(|&value| said[value]).fold(f64::INFINITY, lower);
            values.iter().for_each(|&value| said[value] = lower(said[value] - low, how.far / 1e3));
        }
        let part = self.part.row(row)[slot] * how.saying.step;
        let often = self.often.row(row)[slot];
        let messages = &mut self.messages.numbers[row * self.messages.width + table.message..];
        let belief = &mut beliefs.numbers[variable * beliefs.width..];
        for &value in values {
            let more = part * (said[value] - messages[value]);
            messages[value] += more;
            belief[value] += more * often;
        }
    }
}

/// A sum of terms, and of the cost of each variable on its own.
pub struct Sum {
    terms: Vec<Terms>,
    /// Variable by value; from `far` on the variable does not have the value.
    alone: Rows<f64>,
    /// The number of variables that each stands for.
    size: Vec<f64>,
    far: f64,
    /// By variable.
    slots: Vec<Vec<trees::Slot>>,
    /// The variables that move, by turn: several starts take the same turns.
    grown: Mutex<BTreeMap<u64, Arc<Grown>>>,
    kept: Vec<Kept>,
    /// The cost of each value of each variable, by all messages.
    beliefs: Rows<f64>,
    /// The rows of all terms in the order of messages: that of their variables.
    order: Vec<Row>,
    /// The places in `order` of the first and the last row of each variable.
    places: Vec<(usize, usize)>,
}

/// A row of some terms.
#[derive(Clone, Copy)]
struct Row {
    term: usize,
    row: usize,
}

impl Sum {
    pub fn new(given: Vec<Given>, alone: Rows<f64>, size: Vec<f64>, far: f64) -> Result<Self, Error> {
        if alone.width == 0 || alone.numbers.len() != size.len() * alone.width {
            return Err(Error("each variable needs what it costs on its own, and a size".into()));
        }
        let terms = given.into_iter().map(|given| Terms::new(given, &size, alone.width));
        let terms = terms.collect::<Result<Vec<_>, _>>()?;
        let slots = trees::slots_of(&terms, size.len());
        let kept = kept::kept(&terms, &alone, &size, far, &slots);
        let beliefs = heard(&terms, &alone);
        let order = in_order(&terms);
        let mut places = vec![(usize::MAX, 0); size.len()];
        for (place, row) in order.iter().enumerate() {
            for &variable in terms[row.term].variables.row(row.row) {
                places[variable] = (places[variable].0.min(place), place);
            }
        }
        Ok(Sum { terms, alone, size, far, slots, grown: Mutex::default(), kept, beliefs, order, places })
    }

    /// The sum for a choice of values.
    pub fn energy(&self, chosen: &[usize]) -> Result<f64, Error> {
        self.check(chosen)?;
        let own = chosen.iter().zip(&self.size).enumerate();
        let own: f64 = own.map(|(n, (&value, size))| self.alone.row(n)[value] * size).sum();
        let mut total = Vec::new();
        let terms = self.terms.iter().map(|term| {
            let rows = term.counts.iter().enumerate().map(|(row, count)| {
                term.costs(row, chosen, &mut total);
                total.iter().copied().fold(f64::INFINITY, lower) * count
            });
            rows.sum::<f64>()
        });
        Ok(own + terms.sum::<f64>())
    }

    /// The cheapest way of each row of some terms for a choice of values; of equal ones the first.
    pub fn taken(&self, term: usize, chosen: &[usize]) -> Result<Vec<usize>, Error> {
        self.check(chosen)?;
        let (term, mut total) = (self.term(term)?, Vec::new());
        let rows = (0..term.counts.len()).map(|row| {
            term.costs(row, chosen, &mut total);
            cheapest(&total)
        });
        Ok(rows.collect())
    }

    /// The increase of the sum if one variable alone had another value, variable by value; infinity for
    /// values that it does not have.
    pub fn gains(&self, chosen: &[usize]) -> Result<Rows<f64>, Error> {
        self.check(chosen)?;
        let width = self.alone.width;
        let mut found = Vec::with_capacity(self.alone.numbers.len());
        for ((n, &value), size) in chosen.iter().enumerate().zip(&self.size) {
            let alone = self.alone.row(n);
            let gain = |&cost| if cost < self.far { (cost - alone[value]) * size } else { f64::INFINITY };
            found.extend(alone.iter().map(gain));
        }
        let (mut total, mut rest) = (Vec::new(), Vec::new());
        for term in &self.terms {
            for (row, count) in term.counts.iter().enumerate() {
                term.costs(row, chosen, &mut total);
                let now = total.iter().copied().fold(f64::INFINITY, lower);
                for (table, variable, _) in term.slots(row) {
                    table.least(&total, table.costs.row(chosen[variable]), &mut rest);
                    let then = table.costs.numbers.chunks_exact(rest.len()).map(|costs| least(&rest, costs));
                    let gains = found[variable * width..].iter_mut().zip(then);
                    gains.for_each(|(gain, then)| *gain += (then - now) * count);
                }
            }
        }
        Ok(Rows { width, numbers: found })
    }

    /// The variables that move in a turn.
    fn grown(&self, turn: u64) -> Arc<Grown> {
        let mut known = self.grown.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(turn).or_insert_with(|| Arc::new(Grown::new(self, turn))))
    }

    /// A choice that is no worse. The `turn` selects trees of variables, and these get the best values while
    /// all others keep theirs.
    pub fn moved(&self, chosen: &[usize], turn: u64) -> Result<Vec<usize>, Error> {
        self.check(chosen)?;
        Ok(trees::moved(self, chosen, turn))
    }

    /// The best value of each variable by all messages; of equal ones the first.
    pub fn best(&self) -> Vec<usize> {
        let variables = self.kept.iter().enumerate();
        variables.map(|(variable, kept)| kept.best(self.beliefs.row(variable), kept.values[0])).collect()
    }

    /// A lower bound of the sum: the least of each term and each variable on its own, with costs moved
    /// between them by the messages.
    pub fn bound(&self) -> f64 {
        let variables = self.kept.iter().zip(&self.size).enumerate();
        let least = variables.map(|(variable, (kept, size))| {
            let row = self.beliefs.row(variable);
            kept.values.iter().map(|&value| row[value]).fold(f64::INFINITY, lower) * size
        });
        least.sum::<f64>() + self.left()
    }

    /// All rows send messages to kept values, one after another, or from the last to the first. `lasting`:
    /// messages from many are repeated.
    pub fn sweep(&mut self, backwards: bool, saying: Saying, lasting: bool) {
        let (how, mut scratch) = (How { saying, kept: &self.kept, far: self.far }, Scratch::default());
        let count = self.order.len();
        for number in 0..count {
            let place = if backwards { count - 1 - number } else { number };
            let Row { term, row } = self.order[place];
            let term = &mut self.terms[term];
            let to_come = |&variable: &usize| {
                let (first, last) = self.places[variable];
                if backwards {
                    first < place
                } else {
                    last > place
                }
            };
            if let Some(left) = saying.left {
                share(term.variables.row(row).iter().map(to_come), left, &mut scratch.shares);
            }
            let most = || term.often.row(row).iter().fold(1.0, |most: f64, &often| most.max(often)) as usize;
            for _ in 0..if lasting { most().min(REPEATS) } else { 1 } {
                term.tell(row, &mut self.beliefs, &how, &mut scratch);
            }
        }
        self.beliefs = heard(&self.terms, &self.alone); // computed again, because updates would drift
    }

    /// The messages of some terms to the values of their variables in a slot, row by value; `far` for dropped
    /// values.
    pub fn messages(&self, term: usize, slot: usize) -> Result<Rows<f64>, Error> {
        let term = self.term(term)?;
        let missing = || Error(format!("there is no slot {slot}"));
        let table = term.tables.get(slot).ok_or_else(missing)?;
        let width = table.values();
        let mut found = Rows { width, numbers: vec![self.far; term.counts.len() * width] };
        for (row, said) in term.messages.numbers.chunks_exact(term.messages.width).enumerate() {
            for &value in &self.kept[term.variables.row(row)[slot]].values {
                found.numbers[row * width + value] = said[table.message + value];
            }
        }
        Ok(found)
    }

    /// The least of each term on its own, minus its messages, summed.
    pub fn left(&self) -> f64 {
        let mut total = Vec::new();
        let mut lowest = Vec::new();
        let terms = self.terms.iter().map(|term| {
            let rows = term.counts.iter().enumerate().map(|(row, count)| {
                total.clone_from(&term.base);
                for (table, variable, place) in term.slots(row) {
                    lowest.resize(table.costs.width, 0.0);
                    let said = &term.messages.numbers[place];
                    table.at_best(&self.kept[variable].values, |value| -said[value], &mut lowest);
                    table.add(&mut total, &lowest);
                }
                total.iter().copied().fold(f64::INFINITY, lower) * count
            });
            rows.sum::<f64>()
        });
        terms.sum()
    }

    fn term(&self, number: usize) -> Result<&Terms, Error> {
        self.terms.get(number).ok_or_else(|| Error(format!("there are no terms {number}")))
    }

    fn check(&self, chosen: &[usize]) -> Result<(), Error> {
        if chosen.len() != self.size.len() || chosen.iter().any(|&value| value >= self.alone.width) {
            return Err(Error("a choice needs a value for each variable".into()));
        }
        Ok(())
    }
}

/// The rows of all terms, by their last variables, and of these the first.
fn in_order(terms: &[Terms]) -> Vec<Row> {
    let rows = terms.iter().enumerate();
    let rows = rows.flat_map(|(term, rows)| (0..rows.counts.len()).map(move |row| Row { term, row }));
    let mut order: Vec<Row> = rows.collect();
    order.sort_by_key(|row| {
        let variables = terms[row.term].variables.row(row.row).iter();
        (variables.clone().max().copied(), variables.min().copied())
    });
    order
}

/// The share of each variable of a row, by whether a later row has it.
fn share(to_come: impl Iterator<Item = bool>, left: f64, shares: &mut Vec<f64>) {
    shares.clear();
    shares.extend(to_come.map(|to_come| if to_come { 1.0 } else { left }));
    let all: f64 = shares.iter().sum();
    shares.iter_mut().for_each(|share| *share /= all);
}

/// The cost of each value of each variable, by all messages and its cost `alone`.
fn heard(terms: &[Terms], alone: &Rows<f64>) -> Rows<f64> {
    let mut found = Rows { width: alone.width, numbers: alone.numbers.clone() };
    for term in terms {
        for row in 0..term.counts.len() {
            for ((_, variable, place), often) in term.slots(row).zip(term.often.row(row)) {
                let belief = found.numbers[variable * found.width..].iter_mut();
                let said = &term.messages.numbers[place];
                belief.zip(said).for_each(|(belief, said)| *belief += said * often);
            }
        }
    }
    found
}

/// A table line by value, as one value by line.
fn by_value(table: &Rows<f64>) -> Rows<f64> {
    let width = table.count().next_multiple_of(LANES);
    let mut numbers = vec![f64::INFINITY; table.width * width];
    for line in 0..table.count() {
        for (value, &cost) in table.row(line).iter().enumerate() {
            numbers[value * width + line] = cost;
        }
    }
    Rows { width, numbers }
}

/// The lower of two numbers that are not NaN. Unlike `f64::min` it is one instruction.
#[inline]
fn lower(a: f64, b: f64) -> f64 {
    if b < a {
        b
    } else {
        a
    }
}

/// The least sum of two numbers at one place.
#[inline]
fn least(a: &[f64], b: &[f64]) -> f64 {
    let mut found = [f64::INFINITY; LANES];
    for (a, b) in a.chunks_exact(LANES).zip(b.chunks_exact(LANES)) {
        for lane in 0..LANES {
            found[lane] = lower(found[lane], a[lane] + b[lane]);
        }
    }
    found.into_iter().fold(f64::INFINITY, lower)
}

/// The place of the first least number.
fn cheapest(numbers: &[f64]) -> usize {
    (1..numbers.len()).fold(0, |best, n| if numbers[n] < numbers[best] { n } else { best })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows<T: Clone>(width: usize, numbers: &[T]) -> Rows<T> {
        Rows { width, numbers: numbers.to_vec() }
    }

    /// Two variables with two values each. One term costs 9 if they differ, and the first value of the second
    /// variable costs 1.
    fn sum() -> Sum {
        let apart = || rows(2, &[0.0, 9.0, 9.0, 0.0]);
        let term = Given {
            base: vec![0.0, 0.0],
            lines: vec![vec![0, 1], vec![0, 1]],
            tables: vec![apart(), apart()],
            variables: rows(2, &[0, 1]),
            counts: vec![1.0],
        };
        Sum::new(vec![term], rows(2, &[0.0, 0.0, 1.0, 0.0]), vec![1.0, 1.0], 1e30).unwrap()
    }

    // Shares raise the bound.
    const SHARED: Saying = Saying { step: 1.0, left: Some(1.0) };

    #[test]
    fn the_sum_takes_the_cheapest_way() {
        let sum = sum();
        let energies = [[0, 0], [0, 1], [1, 0], [1, 1]].map(|chosen| sum.energy(&chosen).unwrap());
        assert_eq!(energies, [1.0, 9.0, 10.0, 0.0]);
        assert_eq!(sum.taken(0, &[1, 1]).unwrap(), [1]);
        assert_eq!(sum.gains(&[0, 0]).unwrap().numbers, [0.0, 9.0, 0.0, 8.0]);
    }

    #[test]
    fn messages_lead_to_the_least_and_bound_it() {
        let mut sum = sum();
        for sweep in 0..4 {
            sum.sweep(sweep % 2 == 1, SHARED, false);
            assert!(sum.bound() <= 1e-9);
        }
        assert_eq!(sum.best(), [1, 1]);
        assert!(sum.bound().abs() < 1e-9);
    }

    #[test]
    fn a_tree_gets_its_best_values_at_once() {
        assert_eq!(sum().moved(&[0, 0], 0).unwrap(), [1, 1]);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        assert!(sum().energy(&[0]).is_err());
        assert!(sum().messages(0, 2).is_err());
        assert!(Sum::new(vec![], rows(2, &[0.0, 0.0]), vec![], 1e30).is_err());
    }
}

//! `Store` for Python: facts come in and tuples go out column by column.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};
use rustc_hash::FxHashSet;

use super::order::Sorted;
use super::{convert, letting_go, trace, EngineError, Limits};
use crate::compile::step::RelationId;
use crate::error::Error;
use crate::lines;
use crate::machine::functor::float_word;
use crate::machine::profile;
use crate::program::Program;
use crate::relation::rows::Rows;
use crate::relation::Database;
use crate::store;
use crate::trace::relation::Words;
use crate::values::{Type, Values};

/// A program with its facts and their consequences. Limits hold for each evaluation.
#[pyclass(frozen)]
pub struct Store {
    program: Arc<Program>,
    store: Mutex<store::Store>,
}

/// A `profile::Record`: the source of a rule, the stratum, the round, seconds, new tuples.
type Noted = (usize, usize, usize, f64, usize);

/// A `profile::Counted` with the numbers of the rule and of its order.
type Counted = (usize, usize, usize, f64, usize, Vec<f64>, Vec<u64>);

type Found<'py> = (Vec<Bound<'py, PyAny>>, Bound<'py, PyArray1<i64>>);

/// A column of facts.
#[derive(FromPyObject)]
pub enum Column<'py> {
    /// Numbers; unsigned ones as their bits.
    #[pyo3(transparent)]
    Words(PyReadonlyArray1<'py, i64>),
    #[pyo3(transparent)]
    Floats(PyReadonlyArray1<'py, f64>),
    /// Indices into a list of texts.
    Coded(PyReadonlyArray1<'py, i64>, Bound<'py, PyList>),
    #[pyo3(transparent)]
    Texts(Bound<'py, PyList>),
}

impl Store {
    pub fn new(program: Arc<Program>) -> Self {
        Store { store: Mutex::new(store::Store::new(program.clone())), program }
    }

    pub fn lock(&self, py: Python) -> MutexGuard<'_, store::Store> {
        self.store.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// The store, without the facts that were taken from it.
    fn read(&self, py: Python) -> Result<MutexGuard<'_, store::Store>, Error> {
        let mut store = self.lock(py);
        store.flush()?;
        Ok(store)
    }

    /// The types of the columns of a relation that lines can have; None where they cannot.
    fn line_kinds(&self, relation: RelationId) -> Option<Vec<Type>> {
        let kinds: Vec<Type> =
            self.program.schema(relation).columns.iter().map(|column| column.kind.clone()).collect();
        (!kinds.is_empty() && !kinds.iter().any(|kind| matches!(kind, Type::Record(_)))).then_some(kinds)
    }
}

/// Writes one of the facts that rows have end to end.
fn copying(rows: &Rows) -> impl Fn(usize, &mut [i64]) + '_ {
    |fact, tuple| {
        let first = fact * tuple.len();
        tuple.iter_mut().enumerate().for_each(|(column, word)| *word = rows.word(first + column));
    }
}

/// Facts that come piece by piece; between two of them the store does other things.
#[pyclass]
pub struct Batch {
    store: Py<Store>,
    relation: RelationId,
    rows: Rows,
    count: usize,
}

#[pymethods]
impl Batch {
    /// Take more facts, as `Store.add` takes them. An error where all take more than so many bytes.
    #[pyo3(signature = (rows, memory=None))]
    fn extend(&mut self, py: Python, rows: &Bound<PyAny>, memory: Option<usize>) -> PyResult<()> {
        let Batch { store, relation, rows: gathered, count } = self;
        let store = store.get();
        let mut locked = store.lock(py);
        let (values, first) = (&mut locked.database.values, *count);
        convert::each_tuple(&store.program, values, *relation, 0, first, rows, |tuple| {
            *count += 1;
            Ok(gathered.put(tuple)?)
        })?;
        Ok(locked.room(memory.unwrap_or(usize::MAX)).check(locked.taken() + gathered.bytes(), None)?)
    }

    /// Add these facts: all of them, or none if they take more than so many bytes.
    #[pyo3(signature = (memory=None))]
    fn add(&mut self, py: Python, memory: Option<usize>) -> PyResult<()> {
        let store = &mut *self.store.get().lock(py);
        let room = store.room(memory.unwrap_or(usize::MAX));
        let rows = std::mem::take(&mut self.rows);
        let count = std::mem::take(&mut self.count);
        py.detach(|| store.give_all(self.relation, count, &room, copying(&rows)))?;
        Ok(())
    }
}

/// Lines of fields in one piece.
const LINES: usize = 1 << 14;

/// Lines of fields, piece by piece.
#[pyclass(frozen)]
pub struct Lines {
    store: Py<Store>,
    kinds: Vec<Type>,
    sorted: Sorted,
    delimiter: Vec<u8>,
    quoted: bool,
    /// The first row of the next piece.
    row: AtomicUsize,
}

#[pymethods]
impl Lines {
    fn __iter__(this: Bound<Self>) -> Bound<Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let first = self.row.fetch_add(LINES, Ordering::Relaxed);
        let last = self.sorted.len().min(first.saturating_add(LINES));
        if first >= last {
            return None;
        }
        let store = &*self.store.get().lock(py);
        let text = py.detach(|| {
            let mut text = Vec::new();
            for row in first..last {
                for (column, kind) in self.kinds.iter().enumerate() {
                    if column > 0 {
                        text.extend_from_slice(&self.delimiter);
                    }
                    let word = self.sorted.word(row, column);
                    lines::write(kind, word, &store.database.values, self.quoted, &mut text);
                }
                text.push(b'\n');
            }
            text
        });
        Some(PyBytes::new(py, &text))
    }
}

#[pymethods]
impl Store {
    /// Add facts: tuples, or an int64 array of shape (tuples, columns). Either all are added, or none if they do not fit
    /// or take more than so many bytes.
    #[pyo3(signature = (relation, rows, memory=None))]
    fn add(this: &Bound<Self>, relation: &str, rows: &Bound<PyAny>, memory: Option<usize>) -> PyResult<()> {
        let mut batch = Store::batch(this, relation)?;
        batch.extend(this.py(), rows, memory)?;
        batch.add(this.py(), memory)
    }

    /// Facts of a relation that come piece by piece, and are added in the end.
    fn batch(this: &Bound<Self>, relation: &str) -> PyResult<Batch> {
        let relation = this.get().program.relation(relation)?;
        Ok(Batch { store: this.clone().unbind(), relation, rows: Rows::default(), count: 0 })
    }

    /// Take facts away that were added. Those that are not there are ignored.
    fn remove(&self, py: Python, relation: &str, rows: &Bound<PyAny>) -> PyResult<()> {
        let relation = self.program.relation(relation)?;
        let store = &mut *self.lock(py);
        let mut facts = FxHashSet::default();
        convert::each_tuple(&self.program, &mut store.database.values, relation, 0, 0, rows, |tuple| {
            facts.insert(tuple.into());
            Ok(())
        })?;
        Ok(py.detach(|| store.take(relation, &facts))?)
    }

    /// Take the plan that finds what no longer follows without facts.
    fn plan_losses(&self, py: Python, plan: &str) -> PyResult<()> {
        Ok(self.lock(py).plan_losses(plan)?)
    }

    /// Add facts by column, all of one length. Either all are added or none, as in `add`.
    #[pyo3(signature = (relation, columns, memory=None))]
    fn add_columns(
        &self,
        py: Python,
        relation: &str,
        columns: Vec<Column>,
        memory: Option<usize>,
    ) -> PyResult<()> {
        let relation = self.program.relation(relation)?;
        let mut store = self.lock(py);
        let room = store.room(memory.unwrap_or(usize::MAX));
        let values = &mut store.database.values;
        let schema = self.program.schema(relation);
        let columns = columns.iter().enumerate().map(|(place, column)| {
            column_words(values, column).map_err(|error| {
                let name = schema.columns.get(place).map_or("", |column| &column.name);
                let error = error.value(py);
                EngineError::new_err(format!("`{}`, column `{name}`: {error}", schema.name))
            })
        });
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        let Some(count) = columns.first().map(|column| column.len()) else { return Ok(()) };
        if columns.len() != schema.columns.len() || columns.iter().any(|column| column.len() != count) {
            return Err(EngineError::new_err("columns of facts that do not fit"));
        }
        let store = &mut *store;
        py.detach(|| {
            store.give_all(relation, count, &room, |fact, tuple| {
                tuple.iter_mut().zip(&columns).for_each(|(word, column)| *word = column[fact]);
            })
        })?;
        Ok(())
    }

    /// Add facts as lines of fields, which may be `quoted`; each piece has whole lines, and all have so many bytes, if
    /// that is known. Returns whether all lines fit; if not, no fact is added, and none if they take more than `memory`.
    #[pyo3(signature = (relation, delimiter, quoted, pieces, size=None, memory=None))]
    #[allow(clippy::too_many_arguments)] // which Python names
    fn add_lines(
        &self,
        py: Python,
        relation: &str,
        delimiter: &str,
        quoted: bool,
        pieces: &Bound<PyAny>,
        size: Option<usize>,
        memory: Option<usize>,
    ) -> PyResult<bool> {
        let relation = self.program.relation(relation)?;
        let Some(kinds) = self.line_kinds(relation) else { return Ok(false) };
        let store = &mut *self.lock(py);
        let (mut rows, format) = (Rows::default(), lines::Format { delimiter, quoted });
        let (room, mut bytes_read) = (store.room(memory.unwrap_or(usize::MAX)), 0);
        for piece in pieces.try_iter()? {
            let piece = piece?.cast_into::<PyBytes>()?;
            let (bytes, values) = (piece.as_bytes(), &mut store.database.values);
            let read = py.detach(|| lines::read(&kinds, format, bytes, values, &mut rows));
            if !read.map_err(Error::from)? {
                return Ok(false);
            }
            bytes_read += bytes.len();
            room.check(store.taken() + rows.bytes(), size.map(|size| (bytes_read, size)))?;
            py.check_signals()?;
        }
        let width = kinds.len();
        py.detach(|| store.give_all(relation, rows.len() / width, &room, copying(&rows)))?;
        Ok(true)
    }

    /// The sorted tuples of a relation as lines of fields, in pieces of whole lines; None if it has columns of
    /// records, or none. With `quoted` symbols are in quotes.
    fn lines(this: &Bound<Self>, relation: &str, delimiter: &str, quoted: bool) -> PyResult<Option<Lines>> {
        let (py, store) = (this.py(), this.get());
        let relation = store.program.relation(relation)?;
        let Some(kinds) = store.line_kinds(relation) else { return Ok(None) };
        let locked = &*store.read(py)?;
        let Database { relations, values } = &locked.database;
        let sorted = py.detach(|| Sorted::new(&store.program, values, relation, &relations[relation.0]));
        let (store, delimiter) = (this.clone().unbind(), delimiter.as_bytes().to_vec());
        Ok(Some(Lines { store, kinds, sorted, delimiter, quoted, row: AtomicUsize::new(0) }))
    }

    /// Compute the relations `outputs` and what they depend on, going on from what was computed before.
    #[pyo3(signature = (outputs, limits=Limits::default()))]
    fn evaluate(&self, py: Python, outputs: Vec<String>, limits: Limits) -> PyResult<()> {
        let outputs = outputs.iter().map(|name| self.program.relation(name));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let store = &mut *self.lock(py);
        letting_go(py, limits, |limits| store.evaluate(&outputs, limits))
    }

    /// The relations that are complete for the facts of the last evaluation.
    fn complete(&self, py: Python) -> Vec<String> {
        let names = self.lock(py).complete().map(|id| self.program.schema(id).name.clone()).collect();
        names
    }

    /// The sorted tuples of the outputs of another program, given as a plan, over relations of this
    /// one. `shared` has their names there and here.
    #[pyo3(signature = (plan, shared, limits=Limits::default()))]
    fn ask<'py>(
        &self,
        py: Python<'py>,
        plan: &str,
        shared: Vec<(String, String)>,
        limits: Limits,
    ) -> PyResult<Bound<'py, PyDict>> {
        let store = &mut *self.read(py)?;
        letting_go(py, limits, |limits| {
            store.ask(plan, &shared, limits, |program, database| {
                Python::attach(|py| Ok(convert::answers(py, program, database, &program.outputs())?.unbind()))
            })
        })?
        .map(|answers: Py<PyDict>| answers.into_bound(py))
    }

    /// As `ask`, but each output as `found` gives it.
    #[pyo3(signature = (plan, shared, limits=Limits::default()))]
    fn ask_found(
        &self,
        py: Python,
        plan: &str,
        shared: Vec<(String, String)>,
        limits: Limits,
    ) -> PyResult<Py<PyDict>> {
        let store = &mut *self.read(py)?;
        letting_go(py, limits, |limits| {
            store.ask(plan, &shared, limits, |program, database| {
                let found =
                    program.outputs().into_iter().map(|relation| (relation, by_round(database, relation)));
                let found = found.collect::<Vec<_>>();
                Python::attach(|py| {
                    let answers = PyDict::new(py);
                    for (relation, found) in found {
                        answers.set_item(&program.schema(relation).name, arrays(py, found))?;
                    }
                    Ok(answers.unbind())
                })
            })
        })?
    }

    /// As `evaluate`. Returns, for each application of a rule: its source, the stratum and the
    /// round, seconds, and the number of new tuples.
    #[pyo3(signature = (outputs, limits=Limits::default()))]
    fn profile(&self, py: Python, outputs: Vec<String>, limits: Limits) -> PyResult<Vec<Noted>> {
        let outputs = outputs.iter().map(|name| self.program.relation(name));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let store = &mut *self.lock(py);
        let records = letting_go(py, limits, |limits| store.profile(&outputs, limits))?;
        let record = |r: profile::Record| (r.source, r.stratum, r.round, r.time.as_secs_f64(), r.new);
        Ok(records.into_iter().map(record).collect())
    }

    /// As `evaluate`. Returns, for each rule in each order of its joins: its number in the plan, that of the order,
    /// the number of applications, seconds, the number of new tuples, and the rows after each step, as many as were
    /// expected and as many as there were.
    #[pyo3(signature = (outputs, limits=Limits::default()))]
    fn analyze(&self, py: Python, outputs: Vec<String>, limits: Limits) -> PyResult<Vec<Counted>> {
        let outputs = outputs.iter().map(|name| self.program.relation(name));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let store = &mut *self.lock(py);
        let steps = letting_go(py, limits, |limits| store.analyze(&outputs, limits))?;
        let counted = |((number, order), c): ((usize, usize), profile::Counted)| {
            (number, order, c.applied, c.time.as_secs_f64(), c.new, c.expected, c.rows)
        };
        Ok(steps.into_iter().map(counted).collect())
    }

    /// How many tuples a relation has.
    fn count(&self, py: Python, relation: &str) -> PyResult<usize> {
        let relation = self.program.relation(relation)?;
        Ok(self.read(py)?.database.relations[relation.0].len())
    }

    /// The columns of a relation with sorted tuples: words as int64. Symbols and records are
    /// numbers; `symbols` and `values` resolve them.
    fn columns<'py>(&self, py: Python<'py>, relation: &str) -> PyResult<Vec<Bound<'py, PyArray1<i64>>>> {
        let relation = self.program.relation(relation)?;
        let store = &*self.read(py)?;
        let columns = py.detach(|| {
            convert::check_depth(&self.program, &store.database, relation)?;
            let Database { relations, values } = &store.database;
            PyResult::Ok(Sorted::new(&self.program, values, relation, &relations[relation.0]).into_columns())
        })?;
        Ok(columns.into_iter().map(|column| column.into_pyarray(py)).collect())
    }

    /// The columns of a relation as `columns`, but in the order in which tuples were found, int32
    /// where all words of the relation fit, and the number of the first tuple of each round but the
    /// first. Tuples of one evaluation follow from tuples of earlier strata and earlier rounds.
    fn found<'py>(&self, py: Python<'py>, relation: &str) -> PyResult<Found<'py>> {
        let relation = self.program.relation(relation)?;
        let store = &*self.read(py)?;
        let found = py.detach(|| by_round(&store.database, relation));
        Ok(arrays(py, found))
    }

    /// The first tuple of each round but the first, where all tuples are in their order and can be read by it.
    fn rounds<'py>(&self, py: Python<'py>, relation: &str) -> PyResult<Option<Bound<'py, PyArray1<i64>>>> {
        let relation = self.program.relation(relation)?;
        let relation = &self.read(py)?.database.relations[relation.0];
        let rounds = || relation.rounds().iter().map(|&row| row as i64).collect::<Vec<_>>().into_pyarray(py);
        Ok((relation.visible() == relation.len() && relation.arity() > 0).then(rounds))
    }

    /// The words of some tuples, given in the order of derivation, in a column.
    fn words<'py>(
        &self,
        py: Python<'py>,
        relation: &str,
        column: usize,
        rows: PyReadonlyArray1<i64>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let relation = self.program.relation(relation)?;
        let relation = &self.lock(py).database.relations[relation.0];
        let rows = rows.as_array();
        let words = rows.iter().map(|&row| {
            let row = usize::try_from(row).ok().filter(|&row| row < relation.visible());
            row.filter(|_| column < relation.arity()).map(|row| relation.word(row, column))
        });
        let words = words.collect::<Option<Vec<_>>>();
        Ok(words.ok_or_else(|| EngineError::new_err("tuples that are gone"))?.into_pyarray(py))
    }

    /// The tuples, in the order of derivation, that have some words, given with their columns: at most so many.
    fn with_words<'py>(
        &self,
        py: Python<'py>,
        relation: &str,
        words: Vec<(usize, i64)>,
        most: usize,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let relation = self.program.relation(relation)?;
        let store = &*self.lock(py);
        let relation = &store.database.relations[relation.0];
        let columns = Words::columns(relation.rows(), relation.arity());
        let found = py.detach(|| {
            let words: Option<Vec<_>> =
                words.iter().map(|&(column, word)| Some((columns.get(column)?, word))).collect();
            let has =
                |words: &[(&Words, i64)], row| words.iter().all(|&(column, word)| column.word(row) == word);
            let rows =
                words.map(|words| (0..relation.visible()).filter(move |&row| has(&words, row)).take(most));
            rows.into_iter().flatten().map(|row| row as i64).collect::<Vec<_>>()
        });
        Ok(found.into_pyarray(py))
    }

    /// The facts of a relation: those added, and those in the program.
    fn facts<'py>(&self, py: Python<'py>, relation: &str) -> PyResult<Bound<'py, PyList>> {
        let relation = self.program.relation(relation)?;
        let store = &*self.read(py)?;
        let values = &store.database.values;
        let facts = store.facts(relation);
        let facts =
            facts.iter().map(|words| convert::to_tuple(py, &self.program, values, relation, 0, words));
        PyList::new(py, facts.collect::<PyResult<Vec<_>>>()?)
    }

    /// The sorted tuples of a relation.
    fn rows<'py>(&self, py: Python<'py>, relation: &str) -> PyResult<Bound<'py, PyList>> {
        let relation = self.program.relation(relation)?;
        let store = &*self.read(py)?;
        let tuples = store.database.relations[relation.0].tuples();
        let tuples = py.detach(|| convert::sorted(&self.program, &store.database, relation, &tuples))?;
        let values = &store.database.values;
        let tuples =
            tuples.iter().map(|words| convert::to_tuple(py, &self.program, values, relation, 0, words));
        PyList::new(py, tuples.collect::<PyResult<Vec<_>>>()?)
    }

    /// The symbols by number, from number `start` on.
    fn symbols<'py>(&self, py: Python<'py>, start: usize) -> PyResult<Bound<'py, PyList>> {
        let store = self.lock(py);
        let texts = store.database.values.texts().skip(start).map(|text| PyString::new(py, text));
        PyList::new(py, texts.collect::<Vec<_>>())
    }

    /// The word of a value in a column; None where it does not fit there.
    fn word(&self, py: Python, relation: &str, column: usize, value: &Bound<PyAny>) -> PyResult<Option<i64>> {
        let relation = self.program.relation(relation)?;
        let columns = &self.program.schema(relation).columns;
        let values = &mut self.lock(py).database.values;
        Ok(columns.get(column).and_then(|column| convert::word(&self.program, values, &column.kind, value)))
    }

    /// The ordinal of a text.
    fn ordinal(&self, py: Python, text: &str) -> i64 {
        self.lock(py).ordinal(text)
    }

    /// What finds proofs over arrays of words that this store has given.
    fn trace(this: &Bound<Self>, tables: Vec<trace::Table>) -> PyResult<trace::Trace> {
        trace::Trace::new(this, tables)
    }

    /// The values that words stand for in a column of a relation.
    fn values<'py>(
        &self,
        py: Python<'py>,
        relation: &str,
        column: usize,
        words: PyReadonlyArray1<i64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let relation = self.program.relation(relation)?;
        let kind = self.program.schema(relation).columns.get(column).map(|column| &column.kind);
        let kind = kind.ok_or_else(|| EngineError::new_err("there is no such column"))?;
        let store = self.lock(py);
        let words = words.as_array();
        let values = words
            .iter()
            .map(|&word| convert::to_value(py, &self.program, &store.database.values, kind, word));
        PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
    }
}

/// The columns of a relation in the order in which its tuples were found, and the first tuple of each round but the
/// first.
fn by_round(database: &Database, relation: RelationId) -> (Vec<Rows>, Vec<i64>) {
    let relation = &database.relations[relation.0];
    (relation.columns(), relation.rounds().iter().map(|&row| row as i64).collect())
}

/// Arrays of 32 bits a word where all of them fit.
fn arrays(py: Python<'_>, (columns, rounds): (Vec<Rows>, Vec<i64>)) -> Found<'_> {
    let array = |column| match column {
        Rows::Narrow(words) => words.into_pyarray(py).into_any(),
        Rows::Wide(words) => words.into_pyarray(py).into_any(),
    };
    (columns.into_iter().map(array).collect(), rounds.into_pyarray(py))
}

/// A column as the words that stand for its values; numbers are not copied where they lie side by side.
fn column_words<'c>(values: &mut Values, column: &'c Column) -> PyResult<Cow<'c, [i64]>> {
    Ok(match column {
        Column::Words(words) => match words.as_slice() {
            Ok(words) => words.into(),
            Err(_) => words.as_array().to_vec().into(),
        },
        Column::Floats(floats) => floats.as_array().iter().map(|&value| float_word(value)).collect(),
        Column::Texts(texts) => symbols(values, texts)?.into(),
        Column::Coded(codes, texts) => {
            let words = symbols(values, texts)?;
            let word = |&code: &i64| usize::try_from(code).ok().and_then(|code| words.get(code)).copied();
            let coded = codes.as_array().iter().map(word).collect::<Option<_>>();
            coded.ok_or_else(|| EngineError::new_err("an index of a text that is not there"))?
        }
    })
}

fn symbols(values: &mut Values, texts: &Bound<PyList>) -> PyResult<Vec<i64>> {
    texts.iter().map(|text| convert::symbol(values, text.cast()?)).collect()
}

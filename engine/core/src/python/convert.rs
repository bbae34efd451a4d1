//! Between Python values and words.

use numpy::{PyReadonlyArray2, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyFloat, PyInt, PyList, PySequence, PyString, PyTuple};

use super::order::order;
use super::EngineError;
use crate::compile::step::RelationId;
use crate::error::Error;
use crate::machine::functor::{float, float_word};
use crate::program::Program;
use crate::relation::{Database, Tuples};
use crate::values::nesting::depth;
use crate::values::{RecordType, Type, Values, NIL};

/// Facts as Python has them: tuples, or an int64 array of shape (tuples, columns).
pub type Facts<'py> = Vec<(RelationId, Bound<'py, PyAny>)>;

/// Facts by the name of their relation.
pub fn relations<'py>(program: &Program, facts: &Bound<'py, PyDict>) -> PyResult<Facts<'py>> {
    let named =
        facts.iter().map(|(name, rows)| Ok((program.relation(name.cast::<PyString>()?.to_str()?)?, rows)));
    let mut relations = named.collect::<PyResult<Vec<_>>>()?;
    relations.sort_by_key(|&(relation, _)| relation);
    Ok(relations)
}

/// Call `take` with each tuple of some rows, of which the first is fact number `first`; `skipped` columns at the start
/// of the relation are not given.
pub fn each_tuple(
    program: &Program,
    values: &mut Values,
    relation: RelationId,
    skipped: usize,
    first: usize,
    rows: &Bound<PyAny>,
    mut take: impl FnMut(&[i64]) -> Result<(), Error>,
) -> PyResult<()> {
    let schema = program.schema(relation);
    let columns = &schema.columns[skipped..];
    let values_expected = match columns.len() {
        1 => "1 value".to_string(),
        width => format!("{width} values"),
    };
    // To ask for arrays imports NumPy, which takes longer than many a query.
    let listed = rows.is_instance_of::<PyList>();
    if !listed && rows.cast::<PyUntypedArray>().is_ok_and(|array| array.ndim() == 2) {
        if let Some(column) = columns.iter().find(|column| column.kind != Type::Number) {
            let message = format!(
                "`{}`: column `{}` is no number, so that facts cannot be an array",
                schema.name, column.name
            );
            return Err(EngineError::new_err(message));
        }
        let array: PyReadonlyArray2<i64> = rows.extract()?;
        let array = array.as_array();
        if array.ncols() != columns.len() {
            return Err(EngineError::new_err(format!(
                "`{}`, fact {first}: expected {values_expected}, found {}",
                schema.name,
                array.ncols()
            )));
        }
        for row in array.rows() {
            match row.as_slice() {
                Some(words) => take(words)?,
                None => take(&row.to_vec())?, // of an array in the order of its columns
            }
        }
        return Ok(());
    }
    let mut tuple = Vec::with_capacity(columns.len());
    for (fact, row) in (first..).zip(rows.try_iter()?) {
        let row = row?;
        let Some(row) = as_tuple(&row)?.filter(|tuple| tuple.len() == columns.len()) else {
            return Err(EngineError::new_err(format!(
                "`{}`, fact {fact}: expected a tuple of {values_expected}, found {row:?}",
                schema.name
            )));
        };
        tuple.clear();
        for (column, value) in columns.iter().zip(row.iter_borrowed()) {
            let word = to_word(program, values, &column.kind, &value, DEEPEST).map_err(|error| {
                let (name, column) = (&schema.name, &column.name);
                EngineError::new_err(format!(
                    "`{name}`, fact {fact}, column `{column}`: {}",
                    error.value(row.py())
                ))
            })?;
            tuple.push(word);
        }
        take(&tuple)?;
    }
    Ok(())
}

/// A tuple, or another sequence but a text as one.
fn as_tuple<'py>(row: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyTuple>>> {
    if let Ok(tuple) = row.cast::<PyTuple>() {
        return Ok(Some(tuple.clone()));
    }
    match row.cast::<PySequence>() {
        Ok(row) if !row.is_instance_of::<PyString>() && !row.is_instance_of::<PyBytes>() => {
            row.to_tuple().map(Some)
        }
        _ => Ok(None),
    }
}

/// The word of a text. Raises TypeError for one with halves of characters, which Python has.
pub fn symbol(values: &mut Values, text: &Bound<PyString>) -> PyResult<i64> {
    match text.to_str() {
        Ok(text) => Ok(values.symbol(text)),
        Err(_) => Err(PyTypeError::new_err(format!("expected a text, found {text:?}"))),
    }
}

/// How deep records may nest where Python sees them: its own comparisons and copies are recursive.
const DEEPEST: usize = 500;

/// The number of records in one value, at most. Records that occur twice count twice.
const LARGEST: usize = 1_000_000;

/// So many tuples take longer to sort than to get the interpreter's lock back.
const MANY: usize = 100_000;

/// The word of a value of a type; None where it is of another.
pub fn word(program: &Program, values: &mut Values, kind: &Type, value: &Bound<PyAny>) -> Option<i64> {
    to_word(program, values, kind, value, DEEPEST).ok()
}

/// `levels`: how much deeper records may nest.
fn to_word(
    program: &Program,
    values: &mut Values,
    kind: &Type,
    value: &Bound<PyAny>,
    levels: usize,
) -> PyResult<i64> {
    let expected = |what: &str| PyTypeError::new_err(format!("expected {what}, found {value:?}"));
    match kind {
        Type::Number => value.extract().map_err(|_| expected("a number of 64 bits")),
        Type::Unsigned => value
            .extract::<u64>()
            .map(|word| word as i64)
            .map_err(|_| expected("an unsigned number of 64 bits")),
        Type::Float => value.extract().map(float_word).map_err(|_| expected("a float")),
        Type::Symbol => match value.cast::<PyString>() {
            Ok(text) => symbol(values, text),
            Err(_) => Err(expected("a text")),
        },
        Type::Record(_) if value.is_none() => Ok(NIL),
        Type::Record(record) => {
            let (kinds, levels) = (fields(program, *record)?, inner(levels)?);
            let parts = value.cast::<PyTuple>().map_err(|_| expected("a tuple or None"))?;
            if parts.len() != kinds.len() {
                return Err(expected(&format!("a tuple of {} values", kinds.len())));
            }
            let parts = kinds.iter().zip(parts.iter_borrowed());
            let words = parts.map(|(kind, part)| to_word(program, values, kind, &part, levels));
            let words = words.collect::<PyResult<Vec<_>>>()?;
            Ok(values.record(&words))
        }
    }
}

/// The levels that are left inside of a record.
fn inner(levels: usize) -> PyResult<usize> {
    levels.checked_sub(1).ok_or_else(too_deep)
}

fn too_deep() -> PyErr {
    EngineError::new_err(format!("a record that is nested more than {DEEPEST} levels deep"))
}

/// An error where a relation has a record that Python cannot have. This takes less time than to sort such records.
pub fn check_depth(program: &Program, database: &Database, relation: RelationId) -> PyResult<()> {
    let is_record = |kind: &Type| matches!(kind, Type::Record(_));
    let nests = |kind: &Type| match kind {
        Type::Record(Some(record)) => program.records[record.0].iter().any(is_record),
        _ => false,
    };
    let columns = &program.schema(relation).columns;
    if !columns.iter().any(|column| nests(&column.kind)) {
        return Ok(());
    }
    let tuples = database.relations[relation.0].tuples();
    for (place, column) in columns.iter().enumerate().filter(|(_, column)| nests(&column.kind)) {
        let words = tuples.iter().map(|tuple| tuple[place]);
        if depth(&database.values, &program.records, &column.kind, words) > DEEPEST {
            return Err(too_deep());
        }
    }
    Ok(())
}

fn fields(program: &Program, record: Option<RecordType>) -> PyResult<&[Type]> {
    let missing = || PyErr::from(Error::Plan("it does not say which fields a record type has".to_string()));
    record.map(|record| program.records[record.0].as_slice()).ok_or_else(missing)
}

/// A tuple of a relation without its first `skipped` columns.
pub fn to_tuple<'py>(
    py: Python<'py>,
    program: &Program,
    values: &Values,
    relation: RelationId,
    skipped: usize,
    words: &[i64],
) -> PyResult<Bound<'py, PyTuple>> {
    let columns = program.schema(relation).columns[skipped..].iter();
    let values = columns.zip(words).map(|(column, &word)| to_value(py, program, values, &column.kind, word));
    PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)
}

/// The value of a type that a word stands for.
pub fn to_value<'py>(
    py: Python<'py>,
    program: &Program,
    values: &Values,
    kind: &Type,
    word: i64,
) -> PyResult<Bound<'py, PyAny>> {
    let mut left = LARGEST;
    from_word(py, program, values, kind, word, DEEPEST, &mut left)
}

fn from_word<'py>(
    py: Python<'py>,
    program: &Program,
    values: &Values,
    kind: &Type,
    word: i64,
    levels: usize,
    left: &mut usize,
) -> PyResult<Bound<'py, PyAny>> {
    Ok(match kind {
        Type::Number => PyInt::new(py, word).into_any(),
        Type::Unsigned => PyInt::new(py, word as u64).into_any(),
        // One object, for Python takes a tuple with a NaN for equal only to one with the same.
        Type::Float if float(word).is_nan() => py.import("math")?.getattr("nan")?,
        Type::Float => PyFloat::new(py, float(word)).into_any(),
        Type::Symbol => PyString::new(py, values.text(word)).into_any(),
        Type::Record(_) if word == NIL => py.None().into_bound(py),
        Type::Record(record) => {
            let levels = inner(levels)?;
            *left = left.checked_sub(1).ok_or_else(|| {
                EngineError::new_err(format!("a value that holds more than {LARGEST} records"))
            })?;
            let parts = fields(program, *record)?.iter().zip(values.fields(word).iter());
            let parts = parts.map(|(kind, &part)| from_word(py, program, values, kind, part, levels, left));
            PyTuple::new(py, parts.collect::<PyResult<Vec<_>>>()?)?.into_any()
        }
    })
}

/// The tuples of a relation, sorted by the order of their types.
pub fn sorted<'t>(
    program: &Program,
    database: &Database,
    relation: RelationId,
    tuples: &'t Tuples,
) -> PyResult<Vec<&'t [i64]>> {
    check_depth(program, database, relation)?;
    let rows = order(program, &database.values, relation, tuples);
    Ok(rows.into_iter().map(|row| tuples.tuple(row)).collect())
}

/// Relation name -> sorted list of tuples.
pub fn answers<'py>(
    py: Python<'py>,
    program: &Program,
    database: &Database,
    outputs: &[RelationId],
) -> PyResult<Bound<'py, PyDict>> {
    let answers = PyDict::new(py);
    for &relation in outputs {
        let tuples = database.relations[relation.0].tuples();
        let few = database.relations[relation.0].len() < MANY;
        let sort = || sorted(program, database, relation, &tuples);
        let tuples = if few { sort() } else { py.detach(sort) }?;
        let tuples = tuples.iter().map(|words| to_tuple(py, program, &database.values, relation, 0, words));
        let tuples = PyList::new(py, tuples.collect::<PyResult<Vec<_>>>()?)?;
        answers.set_item(&program.schema(relation).name, tuples)?;
    }
    Ok(answers)
}

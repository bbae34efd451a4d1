//! The plan as the front end writes it (`Plan.to_json`).

use crate::error::Error;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Deserialize)]
pub struct Column {
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub type_name: String,
}

#[derive(Deserialize)]
pub struct Relation {
    pub name: String,
    pub columns: Vec<Column>,
    #[serde(default)]
    pub eqrel: bool,
    #[serde(default)]
    pub output: bool,
    #[serde(default)]
    pub keyed: bool,
    #[serde(default)]
    pub sorted: bool,
    #[serde(default)]
    pub choices: Vec<Vec<usize>>,
    #[serde(default)]
    pub gives: Option<usize>,
    #[serde(default)]
    pub most: Option<usize>,
}

#[derive(Deserialize)]
pub struct Rule {
    pub head: usize,
    pub args: Vec<Value>,
    pub steps: Vec<Value>,
    pub registers: usize,
    pub source: usize,
    #[serde(default)]
    pub orders: Vec<Rule>,
}

#[derive(Deserialize)]
pub struct Source {
    pub file: String,
    pub line: usize,
}

#[derive(Deserialize)]
pub struct Stratum {
    pub relations: Vec<usize>,
    pub rules: Vec<usize>,
    #[serde(default)]
    pub recursive: Vec<usize>,
    #[serde(default)]
    pub updates: Option<Vec<usize>>,
    #[serde(default)]
    pub after: Vec<usize>,
    #[serde(default)]
    pub candidates: Vec<usize>,
    #[serde(default)]
    pub superfluous: Vec<usize>,
}

#[derive(Deserialize)]
pub struct Plan<'a> {
    pub relations: Vec<Relation>,
    #[serde(borrow)]
    rules: Vec<&'a RawValue>,
    pub strata: Vec<Stratum>,
    pub sources: Vec<Source>,
    /// The type of the key, in a keyed program.
    #[serde(default)]
    pub key: Option<String>,
    #[serde(default)]
    pub shared: usize,
    #[serde(default)]
    pub facts: Vec<(usize, Vec<Value>)>,
    /// The fields of each record type.
    #[serde(default)]
    pub records: BTreeMap<String, Vec<Column>>,
    /// The symbols in the program's text, in order.
    #[serde(default)]
    pub texts: Vec<String>,
}

impl Plan<'_> {
    /// A rule, read now: all of them at once would take many times the memory of their text.
    pub fn rule(&self, number: usize) -> Result<Rule, Error> {
        serde_json::from_str(self.rules[number].get()).map_err(|error| Error::Plan(error.to_string()))
    }
}

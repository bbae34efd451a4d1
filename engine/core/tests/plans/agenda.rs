//! The agenda on a chain of items: each gives its largest number to the next slot.

use std::sync::Arc;

use crate::common::{program, relation, rule, LIMITS};
use datalog::agenda::facts::FactSet;
use datalog::agenda::graph::{Graph, Retirement, RetirementArrays};
use datalog::agenda::solver::Solver;
use datalog::agenda::{Agenda, Pass, State};
use datalog::error::Error;
use datalog::program::Program;
use serde_json::json;

/// becomes(1, v) :- held(0, v), limit(w), v < w, !held(1, v).  changed(t) :- becomes(t, _).
fn passing_on() -> Arc<Program> {
    let keyed = |name, columns: &[&str]| {
        let mut keyed = relation(name, columns);
        keyed["keyed"] = json!(true);
        keyed
    };
    program(
        &[
            keyed("held", &["number", "number"]),
            keyed("limit", &["number"]),
            keyed("becomes", &["number", "number"]),
            keyed("changed", &["number"]),
        ],
        &[
            rule(
                2,
                json!([["const", "number", 1], ["reg", 0]]),
                json!([
                    ["scan", 0, "all", [[0, ["const", "number", 0]]], [[1, 0]]],
                    ["scan", 1, "all", [], [[0, 1]]],
                    ["test", "<", "number", ["reg", 0], ["reg", 1]],
                    ["absent", 0, [[0, ["const", "number", 1]], [1, ["reg", 0]]]]
                ]),
            ),
            rule(3, json!([["reg", 0]]), json!([["scan", 2, "all", [], [[0, 0]]]])),
        ],
        json!([{"relations": [2], "rules": [0]}, {"relations": [3], "rules": [1]}]),
    )
}

struct Chain {
    solver: Solver,
    agenda: Agenda,
    limit: i32,
    content: i32,
}

fn facts(program: &Program, relation: &str, tuples: &[&[i64]]) -> FactSet {
    let mut facts = FactSet::default();
    facts.add(program.relation(relation).unwrap(), tuples[0].len(), tuples.iter().copied());
    facts
}

fn chain() -> Chain {
    let program = passing_on();
    let relation = |name| program.relation(name).unwrap();
    let state = vec![State { now: relation("held"), next: relation("becomes") }];
    let mut agenda = Agenda::new(&program, state, relation("changed"), vec![]).unwrap();
    let limit = agenda.intern_static(&facts(&program, "limit", &[&[10]])).0 as i32;
    let content = agenda.intern_content(&facts(&program, "held", &[&[5]])).0 as i32;
    let solver = Solver::new(program.clone(), program.database(), &LIMITS).unwrap();
    Chain { solver, agenda, limit, content }
}

/// Item i holds places i and i + 1; a change of a place is told to the items that hold it.
fn run(chain: &mut Chain, passes: &[Pass], contents: &mut [i32]) -> Result<Vec<[i32; 6]>, Error> {
    let graph = Graph::new(
        &[0, 0, 0],
        [&[0, 2, 4, 6], &[0, 1, 1, 2, 2, 3]],
        &[0, 1, 2, 3],
        4,
        ([&[0, 1, 2, 3, 4], &[0, 1, 2, 3]], [&[0, 0, 0, 0, 0], &[]]),
        [&[0, 1, 3, 5, 6], &[0, 1, 0, 2, 1, 2]],
        immortal(&[0, 0, 0], &[-1, -1, -1], &[0, 0, 0, 0]),
    )?;
    let Chain { solver, agenda, .. } = chain;
    let (log, statistics) = agenda.run(solver, &graph, contents, passes, &LIMITS, &mut |_, _| Ok(()))?;
    assert_eq!(statistics.iter().map(|pass| pass.changes).sum::<usize>(), log.len());
    Ok(log)
}

/// Items of these classes that never retire.
fn immortal<'a>(classes: &'a [i32], never: &'a [i32], offsets: &'a [i32]) -> Retirement<'a> {
    let none: [&[i32]; 2] = [offsets, &[]];
    let given = RetirementArrays {
        keepers: never,
        inside: none,
        uses: none,
        makers: &[],
        users: [&[0], &[]],
        waits: &offsets[1..],
        later: classes,
    };
    Retirement::new(classes.len(), given).unwrap()
}

#[test]
fn a_sweep_gives_every_item_one_turn_in_order() {
    let mut chain = chain();
    let (statics, five) = ([chain.limit], chain.content);
    let mut contents = [five, 0, 0, 0];
    let sweep = Pass { worklist: false, items: &[2, 1, 0], statics: &statics };
    let log = run(&mut chain, &[sweep], &mut contents).unwrap();
    assert_eq!(log, [[0, 0, 1, 1, 0, five]]);
    assert_eq!(contents, [five, five, 0, 0]);
}

#[test]
fn a_worklist_runs_until_nothing_changes() {
    let mut chain = chain();
    let (statics, five) = ([chain.limit], chain.content);
    let mut contents = [five, 0, 0, 0];
    let worklist = Pass { worklist: true, items: &[2, 1, 0], statics: &statics };
    let log = run(&mut chain, &[worklist], &mut contents).unwrap();
    assert_eq!(log, [[0, 0, 1, 1, 0, five], [0, 1, 1, 2, 0, five], [0, 2, 1, 3, 0, five]]);
    assert_eq!(contents, [five; 4]);
}

#[test]
fn classes_without_static_facts_do_nothing() {
    let mut chain = chain();
    let mut contents = [chain.content, 0, 0, 0];
    let idle = Pass { worklist: true, items: &[0, 1, 2], statics: &[-1] };
    assert_eq!(run(&mut chain, &[idle], &mut contents), Ok(vec![]));
}

#[test]
fn equal_facts_have_equal_numbers() {
    let mut chain = chain();
    let program = chain.solver.program.clone();
    let first = chain.agenda.intern_content(&facts(&program, "held", &[&[1], &[2]]));
    let again = chain.agenda.intern_content(&facts(&program, "held", &[&[2], &[1], &[2]]));
    assert_eq!(first, again);
    assert_eq!(chain.agenda.intern_content(&FactSet::default()).0, 0);
}

#[test]
fn an_item_out_of_range_is_reported() {
    let graph = Graph::new(
        &[0],
        [&[0, 1], &[3]],
        &[0],
        1,
        ([&[0, 1], &[0]], [&[0, 0], &[]]),
        [&[0, 0], &[]],
        immortal(&[0], &[-1], &[0, 0]),
    );
    let message = graph.err().map(|error| error.to_string());
    assert_eq!(message.as_deref(), Some("slot holds 3, but there are 1"));
}

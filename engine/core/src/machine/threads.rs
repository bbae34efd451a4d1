//! One rule on several threads. Each takes a run of the tuples that the first scan finds and keeps what it derives
//! to itself; then these are joined in the order of the runs, so that the order of tuples is that of one thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::budget::{Budget, Limits};
use crate::compile::step::{Expression, Pattern, Rule, Step};
use crate::machine::body::{Body, Run, Scratch};
use crate::relation::rows::Rows;
use crate::relation::sink::Sink;
use crate::relation::Relation;
use crate::values::{Type, Values};

/// A body that looks at fewer tuples is not worth a thread.
const LEAST: f64 = 20_000.0;
/// Time between two looks for Ctrl-C while other threads work.
const LOOK: Duration = Duration::from_millis(20);

/// On how many of so many threads a rule runs, if it looks at about `cost` tuples.
pub fn useful(rule: &Rule, relations: &[Relation], cost: f64, threads: usize) -> usize {
    let Some(Step::Scan(first, _)) = rule.steps.first() else { return 1 };
    let head = &relations[rule.head.0];
    if cost < LEAST || first.index.is_some() || head.sink.is_eqrel() {
        return 1;
    }
    threads.min(relations[first.relation.0].count(first.version)).max(1)
}

/// Whether a rule neither makes values nor looks into them, so that several threads can run it.
pub fn is_plain(args: &[Expression], steps: &[Step]) -> bool {
    let plain = |e: &Expression| matches!(e, Expression::Register(_) | Expression::Word(_));
    let known = |pattern: &Pattern| pattern.values.iter().all(plain);
    args.iter().all(plain)
        && steps.iter().all(|step| match step {
            Step::Scan(pattern, _) | Step::Exists(pattern) | Step::Absent(pattern) => known(pattern),
            Step::Test(_, Type::Number | Type::Unsigned | Type::Float, left, right) => {
                plain(left) && plain(right)
            }
            _ => false,
        })
}

/// Run a rule on so many threads, this one among them.
pub fn run(
    rule: &Rule,
    relations: &[Relation],
    budget: &mut Budget,
    sink: &mut Sink,
    scratch: &mut Scratch,
    threads: usize,
) -> Run {
    let stop = AtomicBool::new(false);
    let (memory, time) = (budget.limits.memory, budget.limits.time);
    let (arity, rows) = (sink.arity(), Rows::default());
    let mut values = Values::default();
    let work = |part: usize| -> Run<Sink> {
        let interrupted = || stop.load(Ordering::Relaxed);
        let limits = Limits { tuples: usize::MAX, memory, time, threads: 1, interrupted: &interrupted };
        let (mut sink, mut scratch) = (Sink::new(arity, false), Scratch::default());
        let (mut budget, mut values) = (Budget::new(&limits), Values::default());
        let mut body = Body::new(rule, relations, &mut values, &mut budget, &mut sink, &mut scratch);
        body.take_part((part, threads), &rows);
        body.run(&rule.steps)?;
        Ok(sink)
    };
    let work = &work;
    let (result, found) = thread::scope(|scope| {
        let (done, finished) = mpsc::channel();
        let workers: Vec<_> = (1..threads)
            .map(|part| {
                let done = done.clone();
                scope.spawn(move || {
                    let found = work(part);
                    // Nobody waits any more where this fails.
                    let _ = done.send(());
                    found
                })
            })
            .collect();
        drop(done);
        let known = relations[rule.head.0].rows();
        let mut body = Body::new(rule, relations, &mut values, budget, sink, scratch);
        body.take_part((0, threads), known);
        let mut result = body.run(&rule.steps).map(|_| ());
        let mut left = workers.len();
        while left > 0 {
            if result.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            match finished.recv_timeout(LOOK) {
                Ok(()) => left -= 1,
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) if result.is_ok() => result = budget.check(0),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
        }
        let found: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        (result, found)
    });
    result?;
    for found in found {
        match found {
            Ok(found) => sink.absorb(relations[rule.head.0].rows(), &found?, budget)?,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
    Ok(())
}

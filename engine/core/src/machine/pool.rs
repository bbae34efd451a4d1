//! Threads that help with work that is made of pieces: whoever is free takes the next piece. No thread is waited
//! for that has not taken one, so that on a busy machine little is lost.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::budget::{Budget, Limits};
use crate::error::Fault;
use crate::machine::body::Run;

/// Looks at whether there is work before a helper goes to sleep: work often comes again soon, and to be woken
/// takes longer than many a piece.
const LOOKS: usize = 1 << 12;
/// Time between two looks for Ctrl-C while helpers work.
const LOOK: Duration = Duration::from_millis(20);

pub trait Work: Send + Sync + 'static {
    /// Do one piece. Its results stay in the work.
    fn piece(&self, number: usize, budget: &mut Budget) -> Run;
}

pub struct Pool {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    /// How often there was work.
    calls: AtomicUsize,
    state: Mutex<State>,
    come: Condvar,
}

#[derive(Default)]
struct State {
    call: Option<Arc<dyn Help>>,
    asleep: usize,
    closed: bool,
}

/// Work whose type no helper knows.
trait Help: Send + Sync {
    fn help(&self);
}

/// Work, and the pieces that threads have taken.
struct Call<W> {
    work: W,
    pieces: usize,
    next: AtomicUsize,
    done: AtomicUsize,
    /// Nobody should go on.
    stop: AtomicBool,
    panicked: AtomicBool,
    /// What went wrong first.
    fault: Mutex<Option<Fault>>,
    tuples: usize,
    memory: usize,
    time: Option<(Duration, Instant)>,
    derived: usize,
}

/// Counts a piece as done, even where it panics.
struct Done<'c>(&'c AtomicUsize, &'c AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.1.store(true, Ordering::Relaxed);
        }
        self.0.fetch_add(1, Ordering::Release);
    }
}

impl Pool {
    /// A pool of so many threads, including the thread that brings work.
    pub fn new(threads: usize) -> Self {
        let shared = Arc::<Shared>::default();
        let helper = |_| {
            let shared = shared.clone();
            // Where there are no more threads, fewer help.
            thread::Builder::new().spawn(move || shared.helper()).ok()
        };
        let helpers = (1..threads).filter_map(helper).collect();
        Pool { shared, helpers }
    }

    /// Do all pieces of some work. Returns the work with its results, and the first error. Each
    /// piece is under the limits of `budget`, which counts no tuples.
    pub fn run<W: Work>(&self, work: W, pieces: usize, budget: &mut Budget) -> (W, Run) {
        let Limits { tuples, memory, time, .. } = *budget.limits;
        let mut call = Arc::new(Call {
            work,
            pieces,
            next: AtomicUsize::new(0),
            done: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            panicked: AtomicBool::new(false),
            fault: Mutex::new(None),
            tuples,
            memory,
            time,
            derived: budget.derived,
        });
        self.shared.publish(call.clone());
        call.take_pieces(budget.limits);
        call.wait(budget);
        lock(&self.shared.state).call = None;
        let mut looks = 0;
        let call = loop {
            match Arc::try_unwrap(call) {
                Ok(call) => break call,
                Err(shared) => call = shared,
            }
            pause(&mut looks);
        };
        assert!(!call.panicked.into_inner(), "a thread that evaluates a rule has panicked");
        let fault = call.fault.into_inner().unwrap_or_else(PoisonError::into_inner);
        (call.work, fault.map_or(Ok(()), Err))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        lock(&self.shared.state).closed = true;
        self.shared.calls.fetch_add(1, Ordering::Release);
        self.shared.come.notify_all();
        for helper in self.helpers.drain(..) {
            // Where it has panicked, `run` has said so.
            let _ = helper.join();
        }
    }
}

impl Shared {
    fn publish(&self, call: Arc<dyn Help>) {
        let mut state = lock(&self.state);
        state.call = Some(call);
        self.calls.fetch_add(1, Ordering::Release);
        let asleep = state.asleep > 0;
        drop(state);
        if asleep {
            self.come.notify_all();
        }
    }

    /// Help with all work that comes.
    fn helper(&self) {
        let mut seen = 0;
        loop {
            let mut looks = 0;
            while looks < LOOKS && self.calls.load(Ordering::Acquire) == seen {
                std::hint::spin_loop();
                looks += 1;
            }
            let mut state = lock(&self.state);
            while self.calls.load(Ordering::Acquire) == seen && !state.closed {
                state.asleep += 1;
                state = self.come.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.asleep -= 1;
            }
            if state.closed {
                return;
            }
            seen = self.calls.load(Ordering::Acquire);
            let call = state.call.clone();
            drop(state);
            if let Some(call) = call {
                call.help();
            }
        }
    }
}

impl<W: Work> Call<W> {
    fn take_pieces(&self, limits: &Limits) {
        loop {
            let piece = self.next.fetch_add(1, Ordering::Relaxed);
            if piece >= self.pieces {
                return;
            }
            let done = Done(&self.done, &self.panicked);
            if !self.stop.load(Ordering::Relaxed) {
                let mut budget = Budget::new(limits);
                budget.derived = self.derived;
                if let Err(fault) = self.work.piece(piece, &mut budget) {
                    self.fail(fault);
                }
            }
            drop(done);
        }
    }

    fn fail(&self, fault: Fault) {
        lock(&self.fault).get_or_insert(fault);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Wait until every piece is done.
    fn wait(&self, budget: &mut Budget) {
        let (mut looks, mut looked) = (0, None);
        while self.done.load(Ordering::Acquire) < self.pieces {
            pause(&mut looks);
            if looks >= LOOKS && looked.get_or_insert_with(Instant::now).elapsed() >= LOOK {
                looked = None;
                if let Err(fault) = budget.check(0) {
                    self.fail(fault);
                }
            }
        }
    }
}

impl<W: Work> Help for Call<W> {
    fn help(&self) {
        let interrupted = || self.stop.load(Ordering::Relaxed);
        let (tuples, memory, time) = (self.tuples, self.memory, self.time);
        self.take_pieces(&Limits { tuples, memory, time, threads: 1, interrupted: &interrupted });
    }
}

/// The state that one thread writes, apart from the others': threads that write to one cache line
/// pass it back and forth.
#[derive(Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

/// Let some time pass before the next look; longer ones after many.
fn pause(looks: &mut usize) {
    if *looks < LOOKS {
        *looks += 1;
        std::hint::spin_loop();
    } else {
        thread::yield_now();
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Transitive closure and reachability as fixed points; the answer after each tick is the checksum of the whole view.

use crate::{Pair, Time};
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::iterate::Variable;
use std::cell::RefCell;
use std::rc::Rc;
use timely::dataflow::operators::probe::Handle;
use timely::order::Product;
use timely::worker::Worker;

type Edges = InputSession<Time, Pair, isize>;

/// The checksum of `benchmarks/checks.py`: Σ weight · mix(row) modulo 2^64.
pub trait Row {
    fn mixed(&self) -> u64;
}

impl Row for u32 {
    fn mixed(&self) -> u64 {
        append(SEED, *self)
    }
}

impl Row for Pair {
    fn mixed(&self) -> u64 {
        append(append(SEED, self.0), self.1)
    }
}

const SEED: u64 = 0x9E3779B97F4A7C15;

fn append(mixed: u64, column: u32) -> u64 {
    finalise(mixed ^ finalise(column as u64))
}

fn finalise(x: u64) -> u64 {
    let x = x.wrapping_add(SEED);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58476D1CE4E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D049BB133111EB);
    x ^ (x >> 31)
}

/// A view's changes, taken up as they come and added to its checksum when that is asked for.
pub struct View<R>(pub Rc<RefCell<Vec<(R, isize)>>>);

impl<R: Row> View<R> {
    pub fn checksum(self) -> impl FnMut() -> u64 {
        let mut sum = 0u64;
        move || {
            for (row, weight) in self.0.borrow_mut().drain(..) {
                sum = sum.wrapping_add(row.mixed().wrapping_mul(weight as u64));
            }
            sum
        }
    }
}

/// All pairs (source, target) with a way of one edge or more.
pub fn closure(worker: &mut Worker, probe: &mut Handle<Time>) -> (Edges, impl FnMut() -> u64) {
    let view: View<Pair> = View(Default::default());
    let changes = view.0.clone();
    let edges_in = worker.dataflow(|scope| {
        let (edges_in, edges) = scope.new_collection::<Pair, isize>();
        let edges = edges.arrange_by_key();
        scope
            .iterative::<u32, _, _>(|inner| {
                let edges = edges.enter(inner);
                let base = edges.clone().as_collection(|&source, &target| (source, target));
                let (variable, paths) = Variable::new(inner, Product::new(Default::default(), 1));
                let paths = paths
                    .map(|(source, target)| (target, source))
                    .arrange_by_key()
                    .join_core(edges, |_, &source, &target| Some((source, target)))
                    .concat(base)
                    .distinct();
                variable.set(paths.clone());
                paths.leave(scope)
            })
            .inspect(move |(row, _, diff)| changes.borrow_mut().push((*row, *diff)))
            .probe_with(probe);
        edges_in
    });
    (edges_in, view.checksum())
}

/// The root and all nodes that there is a way to from it.
pub fn reachability(worker: &mut Worker, probe: &mut Handle<Time>, root: u32) -> (Edges, impl FnMut() -> u64) {
    let view: View<u32> = View(Default::default());
    let changes = view.0.clone();
    let edges_in = worker.dataflow(|scope| {
        let (edges_in, edges) = scope.new_collection::<Pair, isize>();
        let edges = edges.arrange_by_key();
        let roots = scope.new_collection_from(vec![root]).1;
        scope
            .iterative::<u32, _, _>(|inner| {
                let (edges, roots) = (edges.enter(inner), roots.enter(inner));
                let (variable, reached) = Variable::new(inner, Product::new(Default::default(), 1));
                let reached = reached.arrange_by_self().join_core(edges, |_, &(), &target| Some(target)).concat(roots).distinct();
                variable.set(reached.clone());
                reached.leave(scope)
            })
            .inspect(move |(row, _, diff)| changes.borrow_mut().push((*row, *diff)))
            .probe_with(probe);
        edges_in
    });
    (edges_in, view.checksum())
}

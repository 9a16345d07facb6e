//! The Datalog programs of benchmarks/programs.py; the answer after each tick is the checksum of the output, a relation of pairs.
//!
//! Inputs are rows of up to three columns, in the order in which benchmarks/programs.py declares the relations.

use crate::recursion::View;
use crate::{Pair, Time};
use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::iterate::Variable;
use timely::dataflow::operators::probe::Handle;
use timely::order::Product;
use timely::worker::Worker;

pub type Row = [u32; 3];
pub type Inputs = Vec<InputSession<Time, Row, isize>>;

macro_rules! pairs {
    ($rows:expr) => {
        $rows.map(|[a, b, _]: Row| (a, b))
    };
}

macro_rules! reversed {
    ($rows:expr) => {
        $rows.map(|[a, b, _]: Row| (b, a))
    };
}

macro_rules! step {
    () => {
        Product::new(Default::default(), 1)
    };
}

/// Andersen's analysis: y = &x, y = z, y = *x, *y = x.
pub fn points_to(worker: &mut Worker, probe: &mut Handle<Time>) -> (Inputs, impl FnMut() -> u64) {
    let view: View<Pair> = View(Default::default());
    let changes = view.0.clone();
    let inputs = worker.dataflow(|scope| {
        let (address_in, address) = scope.new_collection::<Row, isize>();
        let (assign_in, assign) = scope.new_collection::<Row, isize>();
        let (load_in, load) = scope.new_collection::<Row, isize>();
        let (store_in, store) = scope.new_collection::<Row, isize>();
        let address = pairs!(address);
        let assign = reversed!(assign).arrange_by_key();
        let load = reversed!(load).arrange_by_key();
        let store = pairs!(store).arrange_by_key();
        scope
            .iterative::<u32, _, _>(|inner| {
                let (variable, points) = Variable::new(inner, step!());
                let points = points.arrange_by_key();
                let assigned = points.clone().join_core(assign.enter(inner), |_, &x, &y| Some((y, x)));
                let loaded = points
                    .clone()
                    .join_core(load.enter(inner), |_, &z, &y| Some((z, y)))
                    .arrange_by_key()
                    .join_core(points.clone(), |_, &y, &w| Some((y, w)));
                let stored = points
                    .clone()
                    .join_core(store.enter(inner), |_, &z, &x| Some((x, z)))
                    .arrange_by_key()
                    .join_core(points, |_, &z, &w| Some((z, w)));
                let all = address.enter(inner).concat(assigned).concat(loaded).concat(stored).distinct();
                variable.set(all.clone());
                all.leave(scope)
            })
            .inspect(move |(row, _, diff)| changes.borrow_mut().push((*row, *diff)))
            .probe_with(probe);
        vec![address_in, assign_in, load_in, store_in]
    });
    (inputs, view.checksum())
}

/// Pairs of different people whose ways up to a common ancestor are equally long.
pub fn same_generation(worker: &mut Worker, probe: &mut Handle<Time>) -> (Inputs, impl FnMut() -> u64) {
    let view: View<Pair> = View(Default::default());
    let changes = view.0.clone();
    let inputs = worker.dataflow(|scope| {
        let (parent_in, parent) = scope.new_collection::<Row, isize>();
        let children = reversed!(parent).arrange_by_key();
        let siblings = children.clone().join_core(children.clone(), |_, &x, &y| if x != y { Some((x, y)) } else { None });
        scope
            .iterative::<u32, _, _>(|inner| {
                let children = children.enter(inner);
                let (variable, same) = Variable::new(inner, step!());
                let cousins = same
                    .arrange_by_key()
                    .join_core(children.clone(), |_, &b, &x| Some((b, x)))
                    .arrange_by_key()
                    .join_core(children, |_, &x, &y| if x != y { Some((x, y)) } else { None });
                let all = siblings.enter(inner).concat(cousins).distinct();
                variable.set(all.clone());
                all.leave(scope)
            })
            .inspect(move |(row, _, diff)| changes.borrow_mut().push((*row, *diff)))
            .probe_with(probe);
        vec![parent_in]
    });
    (inputs, view.checksum())
}

/// Where the null pointers of each source arrive.
pub fn dataflow(worker: &mut Worker, probe: &mut Handle<Time>) -> (Inputs, impl FnMut() -> u64) {
    let view: View<Pair> = View(Default::default());
    let changes = view.0.clone();
    let inputs = worker.dataflow(|scope| {
        let (sources_in, sources) = scope.new_collection::<Row, isize>();
        let (arcs_in, arcs) = scope.new_collection::<Row, isize>();
        let (sources, arcs) = (pairs!(sources), pairs!(arcs).arrange_by_key());
        scope
            .iterative::<u32, _, _>(|inner| {
                let (variable, null) = Variable::new(inner, step!());
                let ahead = null.map(|(x, w)| (w, x)).arrange_by_key().join_core(arcs.enter(inner), |_, &x, &y| Some((x, y)));
                let all = sources.enter(inner).concat(ahead).distinct();
                variable.set(all.clone());
                all.leave(scope)
            })
            .inspect(move |(row, _, diff)| changes.borrow_mut().push((*row, *diff)))
            .probe_with(probe);
        vec![sources_in, arcs_in]
    });
    (inputs, view.checksum())
}

/// Completion of an ontology in OWL EL: the superclasses of each concept.
pub fn classes(worker: &mut Worker, probe: &mut Handle<Time>) -> (Inputs, impl FnMut() -> u64) {
    let view: View<Pair> = View(Default::default());
    let changes = view.0.clone();
    let inputs = worker.dataflow(|scope| {
        let (concept_in, concept) = scope.new_collection::<Row, isize>();
        let (sub_class_in, sub_class) = scope.new_collection::<Row, isize>();
        let (both_in, both) = scope.new_collection::<Row, isize>();
        let (exists_in, exists) = scope.new_collection::<Row, isize>();
        let (implied_in, implied) = scope.new_collection::<Row, isize>();
        let (sub_role_in, sub_role) = scope.new_collection::<Row, isize>();
        let (chain_in, chain) = scope.new_collection::<Row, isize>();
        let concept = pairs!(concept);
        let sub_class = pairs!(sub_class).arrange_by_key();
        let both = both.map(|[a, c, b]: Row| (a, (c, b))).arrange_by_key();
        let exists = exists.map(|[a, r, b]: Row| (a, (r, b))).arrange_by_key();
        let implied = implied.map(|[r, a, d]: Row| ((r, a), d)).arrange_by_key();
        let sub_role = pairs!(sub_role).arrange_by_key();
        let chain = chain.map(|[r, s, t]: Row| (r, (s, t))).arrange_by_key();
        scope
            .iterative::<u32, _, _>(|inner| {
                let (above_variable, above) = Variable::new(inner, step!()); // (x, a)
                let (related_variable, related) = Variable::new(inner, step!()); // (x, (r, y))
                let of_x = above.clone().arrange_by_key();
                let of_a = above.clone().map(|(x, a)| (a, x)).arrange_by_key();
                let members = above.arrange_by_self();
                let by_role = related.clone().map(|(x, (r, y))| (r, (x, y))).arrange_by_key();
                let by_target = related.clone().map(|(x, (r, y))| (y, (x, r))).arrange_by_key();
                let inherited = of_a.clone().join_core(sub_class.enter(inner), |_, &x, &b| Some((x, b)));
                let met = of_a
                    .clone()
                    .join_core(both.enter(inner), |_, &x, &(c, b)| Some(((x, c), b)))
                    .arrange_by_key()
                    .join_core(members, |&(x, _), &b, &()| Some((x, b)));
                let derived = by_target
                    .clone()
                    .join_core(of_x, |_, &(x, r), &a| Some(((r, a), x)))
                    .arrange_by_key()
                    .join_core(implied.enter(inner), |_, &x, &d| Some((x, d)));
                let above = concept.enter(inner).concat(inherited).concat(met).concat(derived).distinct();
                let direct = of_a.join_core(exists.enter(inner), |_, &x, &(r, b)| Some((x, (r, b))));
                let wider = by_role.clone().join_core(sub_role.enter(inner), |_, &(x, y), &s| Some((x, (s, y))));
                let first = by_role.join_core(chain.enter(inner), |_, &(x, y), &(s, t)| Some(((y, s), (x, t))));
                let second = related.map(|(y, (s, z))| ((y, s), z)).arrange_by_key();
                let chained = first.arrange_by_key().join_core(second, |_, &(x, t), &z| Some((x, (t, z))));
                let related = direct.concat(wider).concat(chained).distinct();
                above_variable.set(above.clone());
                related_variable.set(related);
                above.leave(scope)
            })
            .inspect(move |(row, _, diff)| changes.borrow_mut().push((*row, *diff)))
            .probe_with(probe);
        vec![concept_in, sub_class_in, both_in, exists_in, implied_in, sub_role_in, chain_in]
    });
    (inputs, view.checksum())
}

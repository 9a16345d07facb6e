//! Deltic's benchmark workloads on differential dataflow, one worker.
//!
//! usage: differential-peer join_aggregate ORDERS CUSTOMERS
//!        differential-peer join_aggregate_pushed ORDERS CUSTOMERS   (count and sum ride in the weight below the join)
//!        differential-peer triangles EDGES
//!        differential-peer closure EDGES
//!        differential-peer reachability EDGES ROOT
//!        differential-peer points_to|same_generation|dataflow|classes WIDTH FILE ...   (a file for each input, with the width of its rows)
//!
//! Input files are rows of little-endian i64, sorted by their first column: the tick (0 loads), then the weight,
//! then the columns: orders (order, customer, amount), customers (customer, region), edges (source, target).
//! Values must fit in 32 bits. Prints one JSON object: the seconds of the load and of every tick, peak_mb and what the
//! view held after every tick (join_aggregate: [region, count, sum] for each region; triangles: number of rows; closure,
//! reachability and Datalog programs: the checksum of benchmarks/checks.py).

mod input;
mod programs;
mod recursion;
mod report;
mod triangles;

use differential_dataflow::input::{Input, InputSession};
use differential_dataflow::operators::CountTotal;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::rc::Rc;
use std::time::Instant;
use timely::dataflow::operators::probe::Handle;
use timely::worker::Worker;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

pub type Time = u32;
pub type Pair = (u32, u32);
pub type Total = Rc<RefCell<i64>>;

fn join_aggregate(workload: &'static str, pushed: bool, orders_path: &str, customers_path: &str) {
    let (orders_path, customers_path) = (orders_path.to_owned(), customers_path.to_owned());
    timely::execute_directly(move |worker| {
        let view: Rc<RefCell<BTreeMap<u32, (i64, i64)>>> = Default::default();
        let mut probe = Handle::new();
        let (mut orders_in, mut customers_in) = worker.dataflow::<Time, _, _>(|scope| {
            let (orders_in, orders) = scope.new_collection::<(u32, Pair), isize>(); // customer, (order, amount)
            let (customers_in, customers) = scope.new_collection::<Pair, isize>(); // customer, region
            let view = view.clone();
            let customers = customers.arrange_by_key();
            let regions = if pushed {
                orders
                    .explode(|(customer, (_, amount))| Some((customer, (1isize, amount as isize))))
                    .arrange_by_self()
                    .join_core(customers, |_, &(), &region| Some(region))
            } else {
                orders
                    .arrange_by_key()
                    .join_core(customers, |_, &(_, amount), &region| Some((region, amount)))
                    .explode(|(region, amount)| Some((region, (1isize, amount as isize))))
            };
            regions
                .count_total()
                .inspect(move |((region, (count, sum)), _, diff)| {
                    let mut view = view.borrow_mut();
                    let entry = view.entry(*region).or_default();
                    entry.0 += (*count * *diff) as i64;
                    entry.1 += (*sum * *diff) as i64;
                })
                .probe_with(&mut probe);
            (orders_in, customers_in)
        });
        let orders = input::ticks(&orders_path, 5);
        let customers = input::ticks(&customers_path, 4);
        let (mut seconds, mut views) = (vec![], vec![]);
        for tick in 0..orders.len().max(customers.len()) {
            let start = Instant::now();
            for row in orders.get(tick).into_iter().flatten() {
                orders_in.update((row[2] as u32, (row[1] as u32, row[3] as u32)), row[0] as isize);
            }
            for row in customers.get(tick).into_iter().flatten() {
                customers_in.update((row[1] as u32, row[2] as u32), row[0] as isize);
            }
            let now = tick as Time + 1;
            orders_in.advance_to(now);
            customers_in.advance_to(now);
            orders_in.flush();
            customers_in.flush();
            while probe.less_than(&now) {
                worker.step();
            }
            seconds.push(start.elapsed().as_secs_f64());
            views.push(view.borrow().iter().filter(|(_, (count, _))| *count != 0).map(|(region, (count, sum))| [*region as i64, *count, *sum]).collect::<Vec<_>>());
        }
        report::print(workload, &seconds, &format!("{views:?}"));
    });
}

/// Feeds the edges tick by tick to the dataflow that `build` makes, and reports its answer after each tick, which is not timed.
fn graph<A: FnMut() -> N, N: Debug>(
    workload: &'static str,
    path: &str,
    build: impl Fn(&mut Worker, &mut Handle<Time>) -> (InputSession<Time, Pair, isize>, A) + Send + Sync + 'static,
) {
    let path = path.to_owned();
    timely::execute_directly(move |worker| {
        let mut probe = Handle::new();
        let (mut edges_in, mut answer) = build(worker, &mut probe);
        let (mut seconds, mut answers) = (vec![], vec![]);
        for (tick, rows) in input::ticks(&path, 4).iter().enumerate() {
            let start = Instant::now();
            for row in rows {
                edges_in.update((row[1] as u32, row[2] as u32), row[0] as isize);
            }
            let now = tick as Time + 1;
            edges_in.advance_to(now);
            edges_in.flush();
            while probe.less_than(&now) {
                worker.step();
            }
            seconds.push(start.elapsed().as_secs_f64());
            answers.push(answer());
        }
        report::print(workload, &seconds, &format!("{answers:?}"));
    });
}

/// Feeds the facts tick by tick to the program that `build` makes, as `graph` does.
fn program<A: FnMut() -> u64>(
    workload: &'static str,
    files: &[&str],
    build: impl Fn(&mut Worker, &mut Handle<Time>) -> (programs::Inputs, A) + Send + Sync + 'static,
) {
    let feeds: Vec<_> = files.chunks_exact(2).map(|pair| input::ticks(pair[1], pair[0].parse().expect("WIDTH is a number"))).collect();
    timely::execute_directly(move |worker| {
        let mut probe = Handle::new();
        let (mut inputs, mut answer) = build(worker, &mut probe);
        assert_eq!(inputs.len(), feeds.len(), "a file for each input");
        let (mut seconds, mut answers) = (vec![], vec![]);
        for tick in 0..feeds.iter().map(Vec::len).max().unwrap_or(0) {
            let start = Instant::now();
            let now = tick as Time + 1;
            for (session, feed) in inputs.iter_mut().zip(&feeds) {
                for row in feed.get(tick).into_iter().flatten() {
                    session.update([row[1] as u32, row[2] as u32, row[3] as u32], row[0] as isize);
                }
                session.advance_to(now);
                session.flush();
            }
            while probe.less_than(&now) {
                worker.step();
            }
            seconds.push(start.elapsed().as_secs_f64());
            answers.push(answer());
        }
        report::print(workload, &seconds, &format!("{answers:?}"));
    });
}

fn triangles(worker: &mut Worker, probe: &mut Handle<Time>) -> (InputSession<Time, Pair, isize>, impl FnMut() -> i64) {
    let total = Total::default();
    let edges_in = triangles::build(worker, total.clone(), probe);
    (edges_in, move || *total.borrow())
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["join_aggregate", orders, customers] => join_aggregate("join_aggregate", false, orders, customers),
        ["join_aggregate_pushed", orders, customers] => join_aggregate("join_aggregate_pushed", true, orders, customers),
        ["triangles", edges] => graph("triangles", edges, triangles),
        ["closure", edges] => graph("closure", edges, recursion::closure),
        ["reachability", edges, root] => {
            let root = root.parse().expect("ROOT is a node's number");
            graph("reachability", edges, move |worker, probe| recursion::reachability(worker, probe, root))
        }
        ["points_to", ref files @ ..] => program("points_to", files, programs::points_to),
        ["same_generation", ref files @ ..] => program("same_generation", files, programs::same_generation),
        ["dataflow", ref files @ ..] => program("dataflow", files, programs::dataflow),
        ["classes", ref files @ ..] => program("classes", files, programs::classes),
        _ => {
            eprintln!("usage: differential-peer join_aggregate[_pushed] ORDERS CUSTOMERS | triangles EDGES | closure EDGES | reachability EDGES ROOT");
            std::process::exit(2)
        }
    }
}

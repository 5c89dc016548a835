//! Counts the bytes per pod of a snapshot of 5,000 nodes and 100,000 pods, without the objects. Prints lines in the format of the program
//! `figures`. This is a program of its own because the counting allocator would slow down measurements of time.

use peak_alloc::PeakAlloc;
use reprieve_loader::build::Loaded;
use reprieve_testkit::goals::BYTES_PER_POD_GOAL;
use reprieve_testkit::scale;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

fn main() {
    let before = ALLOCATOR.current_usage();
    let scenario = scale::pod(5000, 20);
    let pods = scenario.objects.pods.len();
    let (mut loaded, question) = scenario.load();
    scenario.check(&mut loaded, &question);
    drop(scenario);
    let Loaded { snapshot, names, warnings, .. } = loaded;
    let with_names = ALLOCATOR.current_usage() - before;
    drop((names, warnings));
    let alone = ALLOCATOR.current_usage() - before;
    drop(snapshot);
    println!("snapshot-5000x20\tbytes\t{BYTES_PER_POD_GOAL}\t{}\t\t\t", alone / pods);
    println!("names-5000x20\tbytes\t\t{}\t\t\t", (with_names - alone) / pods);
}

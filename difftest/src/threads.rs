//! The threads of plaintext products: as many as there are cores, or as many as the system gives. Left to itself, rayon
//! panics where one is refused.

use rayon::{ThreadBuilder, ThreadPoolBuildError, ThreadPoolBuilder};
use std::sync::mpsc::{Sender, channel};

/// Starts the process's rayon pool on the threads that can be had, at most one a core; on this thread alone if there is
/// none. Called once, before anything uses rayon; without effect if there is a pool already.
pub fn start() {
    let _already = pool(threads(std::thread::available_parallelism().map_or(1, usize::from)));
}

/// Threads that run, each waiting for its part of a pool: once they are there, making the pool cannot fail.
fn threads(wanted: usize) -> Vec<Sender<ThreadBuilder>> {
    let one = |n: usize| {
        let (part, parts) = channel::<ThreadBuilder>();
        let run = move || parts.recv().into_iter().for_each(ThreadBuilder::run);
        std::thread::Builder::new().name(format!("plaintext {n}")).spawn(run).ok().map(|_| part)
    };
    (0..wanted).map_while(one).collect()
}

fn pool(threads: Vec<Sender<ThreadBuilder>>) -> Result<(), ThreadPoolBuildError> {
    if threads.is_empty() {
        return ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    }
    let count = threads.len();
    let mut threads = threads.into_iter();
    let give = |part| match threads.next().map(|thread| thread.send(part)) {
        Some(Ok(())) => Ok(()),
        _ => Err(std::io::ErrorKind::WouldBlock.into()),
    };
    ThreadPoolBuilder::new().num_threads(count).spawn_handler(give).build_global()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn the_pool_runs_on_the_threads_that_were_started() {
        // The process's only pool, unless another test was first; then nothing changes.
        start();
        start();
        let sum: u64 = (0..10_000u64).into_par_iter().sum();
        assert_eq!(sum, 49_995_000);
    }
}

//! The threads that the parties of one process run on: three of them, or one.
//!
//! They are one pool: each party has a thread of its own for as long as it lives, and machines with more cores have
//! threads beside those. A matrix product is cut into pieces that any thread of the pool may take, and a party that
//! waits for a message takes pieces while it waits ([`help`]). So no core is idle while another has a product to share.
//! A piece is an operand and a place for its product, not a party's state: what a party can read does not change, and
//! in a deployment of three machines nobody waits in the same pool.

use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder, Yield};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// What one party does, on a thread of this name.
pub(crate) type Body = (String, Box<dyn FnOnce() + Send>);

/// Running parties. Dropping it waits until all have ended.
pub(crate) struct Pool {
    ended: Receiver<()>,
    _pool: ThreadPool,
}

impl Pool {
    /// Runs each party on a thread of its own, out of at least `threads` where the system gives so many. One that
    /// panics ends; its thread goes on helping.
    ///
    /// # Errors
    /// The system has no thread for each party.
    pub fn start(threads: usize, parties: Vec<Body>) -> std::result::Result<Self, ThreadPoolBuildError> {
        let (names, parties): (Vec<_>, Vec<_>) = parties.into_iter().unzip();
        let pool = pool(threads.max(names.len()), &names).or_else(|_| patient(|| pool(names.len(), &names)))?;
        let (alive, ended) = channel::<()>();
        let parties = Mutex::new(parties.into_iter().map(Some).collect::<Vec<_>>());
        pool.spawn_broadcast(move |thread| {
            // Dropped with the last thread's copy of this closure.
            let _alive = &alive;
            let party = parties.lock().ok().and_then(|mut p| p.get_mut(thread.index()).and_then(Option::take));
            if let Some(party) = party {
                party();
            }
        });
        Ok(Pool { ended, _pool: pool })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.ended.recv();
    }
}

fn pool(threads: usize, parties: &[String]) -> std::result::Result<ThreadPool, ThreadPoolBuildError> {
    let names = parties.to_vec();
    ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(move |i| names.get(i).cloned().unwrap_or_else(|| format!("helper {i}")))
        .panic_handler(|_| {})
        .build()
}

/// Again for a while what failed: the threads of a pool that was dropped just before count against the limit until they
/// are gone.
fn patient<T, E>(mut start: impl FnMut() -> std::result::Result<T, E>) -> std::result::Result<T, E> {
    for _ in 0..PATIENCE {
        if let Ok(started) = start() {
            return Ok(started);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    start()
}

/// Attempts to start the parties' threads, 5 ms apart.
const PATIENCE: usize = 100;

/// Does a piece of what is to be done in this thread's pool. False if there is none, or no pool.
pub(crate) fn help() -> bool {
    rayon::yield_now() == Some(Yield::Executed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    fn named<const N: usize>(bodies: [Box<dyn FnOnce() + Send>; N]) -> Vec<Body> {
        bodies.into_iter().map(|body| ("a party".to_owned(), body)).collect()
    }

    /// As a system's list of threads shows them.
    #[test]
    fn each_party_runs_on_a_thread_of_its_name() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let body = |name: &str| -> Body {
            let (seen, name) = (Arc::clone(&seen), name.to_owned());
            let note = move || seen.lock().unwrap().push(std::thread::current().name().map(str::to_owned));
            (name, Box::new(note))
        };
        drop(Pool::start(3, vec![body("party 2")]).unwrap());
        drop(Pool::start(1, vec![body("one"), body("other")]).unwrap());
        let mut seen = std::mem::take(&mut *seen.lock().unwrap());
        seen.sort();
        assert_eq!(seen, ["one", "other", "party 2"].map(|name| Some(name.to_owned())));
    }

    #[test]
    fn a_party_that_waits_takes_pieces_and_the_end_waits_for_all() {
        let (pieces, helped, ended) =
            (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let owner: Box<dyn FnOnce() + Send> = {
            let (pieces, helped) = (Arc::clone(&pieces), Arc::clone(&helped));
            Box::new(move || {
                // Over only once somebody has helped.
                (0..2).into_par_iter().for_each(|_| {
                    pieces.fetch_add(1, Ordering::SeqCst);
                    while pieces.load(Ordering::SeqCst) < 2 {
                        std::thread::yield_now();
                    }
                });
                helped.fetch_add(100, Ordering::SeqCst);
            })
        };
        let waiting = || -> Box<dyn FnOnce() + Send> {
            let (helped, ended) = (Arc::clone(&helped), Arc::clone(&ended));
            Box::new(move || {
                while helped.load(Ordering::SeqCst) < 100 {
                    helped.fetch_add(usize::from(help()), Ordering::SeqCst);
                }
                ended.fetch_add(1, Ordering::SeqCst);
            })
        };
        drop(Pool::start(1, named([waiting(), owner, waiting()])).unwrap());
        assert_eq!(ended.load(Ordering::SeqCst), 2);
        assert_eq!(pieces.load(Ordering::SeqCst), 2);
        assert!(helped.load(Ordering::SeqCst) > 100);
        assert!(!help(), "no pool here");
    }

    #[test]
    fn a_party_that_panics_leaves_the_others_alone() {
        let ended = Arc::new(AtomicUsize::new(0));
        let quiet = || -> Box<dyn FnOnce() + Send> {
            let ended = Arc::clone(&ended);
            Box::new(move || _ = ended.fetch_add(1, Ordering::SeqCst))
        };
        drop(Pool::start(1, named([quiet(), Box::new(|| panic!("planted")), quiet()])).unwrap());
        assert_eq!(ended.load(Ordering::SeqCst), 2);
    }
}

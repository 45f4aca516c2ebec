//! A wish to end early: a run that hears of it finishes its step and reports what it found so far.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

static FLAG: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// The flag that says so, for whoever hears the user: a signal handler may set it.
pub fn flag() -> Arc<AtomicBool> {
    Arc::clone(&FLAG)
}

/// Whether runs of this process are to end after the step that they are at.
pub fn requested() -> bool {
    FLAG.load(Ordering::Relaxed)
}

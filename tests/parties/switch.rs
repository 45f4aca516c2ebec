//! A link that a test can cut, reset and delay: a relay in user space.

use rustix::net::sockopt::set_socket_linger;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a link does with what is sent over it.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// It passes everything on.
    Whole,
    /// Nothing arrives any more, and nobody is told.
    Cut,
    /// Everything arrives later.
    Slow,
    /// It is broken off.
    Reset,
}

/// How much later.
const LATER: Duration = Duration::from_millis(100);

/// A link to whoever listens at a target, which may change. Connections that are made later go to the new one.
#[derive(Clone)]
pub struct Switch {
    /// Where to connect to.
    pub address: String,
    target: Arc<Mutex<String>>,
    mode: Arc<AtomicU8>,
    ends: Arc<Mutex<Vec<TcpStream>>>,
}

impl Switch {
    /// A link that leads nowhere yet.
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mode = Arc::new(AtomicU8::new(Mode::Whole as u8));
        let switch = Switch { address, target: Arc::default(), mode, ends: Arc::default() };
        let given = switch.clone();
        std::thread::spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                given.connect(near);
            }
        });
        switch
    }

    /// Leads there from now on.
    pub fn lead_to(&self, target: &str) {
        target.clone_into(&mut self.target.lock().unwrap());
    }

    /// Does this from now on with what is sent.
    pub fn set(&self, mode: Mode) {
        self.mode.store(mode as u8, Ordering::SeqCst);
    }

    /// Passes everything on again over connections that are made later.
    pub fn mend(&self) {
        self.set(Mode::Whole);
        self.ends.lock().unwrap().clear();
    }

    /// Breaks every connection off: both ends are told by a reset.
    pub fn reset(&self) {
        self.set(Mode::Reset);
        for end in self.ends.lock().unwrap().drain(..) {
            let _ = set_socket_linger(&end, Some(Duration::ZERO));
            let _ = end.shutdown(Shutdown::Read);
        }
    }

    fn is(&self, mode: Mode) -> bool {
        self.mode.load(Ordering::SeqCst) == mode as u8
    }

    fn connect(&self, near: TcpStream) {
        let target = self.target.lock().unwrap().clone();
        let Ok(far) = TcpStream::connect(target) else { return };
        for end in [&near, &far] {
            end.set_nodelay(true).unwrap();
        }
        let (from_near, from_far) = (near.try_clone().unwrap(), far.try_clone().unwrap());
        self.ends.lock().unwrap().extend([near.try_clone().unwrap(), far.try_clone().unwrap()]);
        for (from, to) in [(from_near, far), (from_far, near)] {
            let switch = self.clone();
            std::thread::spawn(move || switch.pass(from, to));
        }
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(n @ 1..) = from.read(&mut buffer) {
            if self.is(Mode::Slow) {
                std::thread::sleep(LATER);
            }
            // What was sent into a link that is cut is lost, and so is all that follows.
            if self.is(Mode::Cut) {
                while from.read(&mut buffer).is_ok_and(|n| n > 0) {}
                break;
            }
            if to.write_all(&buffer[..n]).is_err() {
                break;
            }
        }
        // A connection in order is ended in order; one that is broken off is reset when its last end is dropped.
        if !self.is(Mode::Reset) {
            let _ = to.shutdown(Shutdown::Write);
        }
    }
}

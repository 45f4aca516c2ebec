//! Vectors that one thread makes and another drops come back: no thread hoards them. A process of its own, where nobody
//! else takes any.

use secure::buffer::Words;

#[test]
fn what_another_thread_dropped_is_handed_out_again() {
    const N: usize = 10_000;
    let made: Vec<Words> = (0..300).map(|_| Words::unset(N)).collect();
    std::thread::spawn(move || drop(made)).join().unwrap();
    let before = Words::allocated();
    // The shelf holds 256 of a size.
    let again: Vec<Words> = (0..256).map(|_| Words::unset(N)).collect();
    assert_eq!(Words::allocated(), before);
    assert!(again.iter().all(|words| words.len() == N));
    drop(Words::unset(N));
    assert_eq!(Words::allocated(), before + 1, "and no more than that");
}

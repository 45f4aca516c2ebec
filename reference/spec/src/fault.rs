//! Faults of the specification itself that can be planted on purpose, to prove that a tester finds them.
//!
//! All sides of a comparison read the specification, so a fault in it makes no difference between them: only a check
//! that computes from the real numbers alone can see it. A build without the feature `faults` cannot plant one:
//! `planted` is then constantly false.

/// Makes a catalogue of faults: the type `Fault`, and the functions `planted` and, with the feature `faults` of the
/// calling crate, `plant`. Each line has the variant, the name on the command line, the place that is broken, and in
/// one line how.
///
/// ```
/// mod faults {
///     spec::fault_catalogue! {
///         Sign, "sign", "update", "the gradient is added instead of subtracted";
///     }
/// }
/// assert_eq!(faults::Fault::ALL[0].name(), "sign");
/// assert!(!faults::planted(faults::Fault::Sign));
/// ```
#[macro_export]
macro_rules! fault_catalogue {
    ($($fault:ident, $name:literal, $place:literal, $what:literal;)*) => {
        /// A fault that can be planted.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Fault {
            $(#[doc = $what] $fault,)*
        }

        impl Fault {
            /// The whole catalogue.
            pub const ALL: &[Fault] = &[$(Fault::$fault,)*];

            /// Its name on the command line.
            pub const fn name(self) -> &'static str {
                match self { $(Fault::$fault => $name,)* }
            }

            /// The protocol, layer, constant or datum that it breaks.
            pub const fn place(self) -> &'static str {
                match self { $(Fault::$fault => $place,)* }
            }

            /// The mistake, in one line.
            pub const fn description(self) -> &'static str {
                match self { $(Fault::$fault => $what,)* }
            }
        }

        impl std::fmt::Display for Fault {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.name())
            }
        }

        /// Whether the fault is planted: never, in this build.
        #[cfg(not(feature = "faults"))]
        #[inline(always)]
        pub const fn planted(_: Fault) -> bool {
            false
        }

        #[cfg(feature = "faults")]
        pub use selection::{plant, planted};

        #[cfg(feature = "faults")]
        mod selection {
            use super::Fault;
            use std::sync::atomic::{AtomicUsize, Ordering};

            /// 0: none; k + 1: the k-th fault.
            static PLANTED: AtomicUsize = AtomicUsize::new(0);

            /// Plants one fault in the whole process, or none. Plant it before a run begins.
            pub fn plant(fault: Option<Fault>) {
                PLANTED.store(fault.map_or(0, |f| f as usize + 1), Ordering::SeqCst);
            }

            /// Whether the fault is planted.
            pub fn planted(fault: Fault) -> bool {
                PLANTED.load(Ordering::Relaxed) == fault as usize + 1
            }
        }
    };
}

fault_catalogue! {
    RateDoubled, "spec-rate", "learning rate / batch", "the learning rate is encoded at twice its value, for all sides";
    BatchDivisor, "spec-batch", "learning rate / batch", "the gradient is divided by one row more than the batch has, \
        for all sides";
    MomentumHalved, "spec-momentum", "momentum", "the momentum is encoded at half its value, for all sides";
    EpsilonDoubled, "spec-epsilon", "epsilon", "epsilon is encoded at twice its value, for all sides";
    Log2E, "spec-log2e", "log2 e", "log2 e is encoded with three digits only, for all sides";
    PixelScale, "spec-pixel", "pixels", "pixels are divided by 255 instead of 256, for all sides";
    LabelShift, "spec-label", "labels", "every label names the class after its own, for all sides";
    RowTwice, "spec-order", "batch order", "one row of each epoch is taken twice and another never, for all sides";
    WeightsHalved, "spec-weights", "initial weights", "initial weights fill half of their interval, for all sides";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_nothing_is_planted_unasked() {
        let names: std::collections::BTreeSet<_> = Fault::ALL.iter().map(|f| f.name()).collect();
        assert_eq!(names.len(), Fault::ALL.len());
        assert!(Fault::ALL.iter().all(|&f| !planted(f) && !f.description().is_empty()));
    }
}

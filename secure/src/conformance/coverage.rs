//! Nothing is left out: a protocol, head or depth without its tests fails here.

use super::{heads, protocols, training};
use spec::Head;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Files of the folder that are no protocol.
const NO_PROTOCOL: [&str; 2] = ["costs", "tests"];

#[test]
fn every_protocol_is_compared_with_the_model() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/protocol");
    let names = fs::read_dir(folder).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        (path.extension().is_some_and(|e| e == "rs") && !NO_PROTOCOL.contains(&name.as_str())).then_some(name)
    });
    let files: BTreeSet<String> = names.collect();
    let compared: BTreeSet<String> = protocols::COMPARED.iter().map(ToString::to_string).collect();
    assert!(files.len() > 10, "the protocols were found: {files:?}");
    assert_eq!(files, compared, "left: the protocols that there are; right: those that are compared");
}

#[test]
fn every_head_is_compared_at_every_depth() {
    for compared in
        [heads::HEADS, training::one_layer::HEADS, training::two_layers::HEADS, training::three_layers::HEADS]
    {
        assert_eq!(compared, Head::ALL);
    }
}

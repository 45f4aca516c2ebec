//! A whole trace: header and tensors by name. Names are those of the probes, after `step/N/`.

use super::header::Header;
use super::tensor::Tensor;
use super::{npz, safetensors};
use crate::error::{Error, FileKind, Malformed, OutputError};
use crate::{input, output};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The most bytes of a trace that are read, unpacked.
pub const LIMIT: u64 = 4 << 30;

/// Where a file of JSON stands in the place of a trace. Older versions saved steps so.
const OLD_STEP: &str = "it is JSON; traces and saved steps are .npz or .safetensors: run the command that saved it \
    again, with --save-step N FILE.npz";

/// A trace in memory.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceFile {
    /// The header, in which the engine describes itself.
    pub header: Header,
    /// Tensors by full name, for instance `step/0/logits`.
    pub tensors: BTreeMap<String, Tensor>,
}

impl TraceFile {
    /// Reads a file, whichever of the two containers it is.
    ///
    /// # Errors
    /// One line that names the file, what is wrong with it, and what would be right.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let refuse = |what: String| Malformed::new(FileKind::Trace, path, what);
        let size = std::fs::metadata(path).map_err(Error::file(path))?.len();
        if size > LIMIT {
            return Err(refuse(format!("it has {size} bytes; at most {LIMIT} are read: record fewer steps")).into());
        }
        Ok(Self::parse(&input::bytes(path, LIMIT)?).map_err(refuse)?)
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if is_json(bytes) {
            return Err(OLD_STEP.into());
        }
        let (header, tensors) =
            if bytes.starts_with(b"PK") { npz::read(bytes, LIMIT)? } else { safetensors::read(bytes)? };
        let trace = TraceFile { header: Header::parse(&header)?, tensors };
        trace.check_names()?;
        Ok(trace)
    }

    /// Refuses a name that promises another format than a trace has.
    ///
    /// # Errors
    /// Says which names there are.
    pub fn check_name(path: &Path) -> Result<(), Error> {
        match path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json")) {
            true => Err(OutputError::NoJson(path.into()).into()),
            false => Ok(()),
        }
    }

    /// Writes a file: `.safetensors` by its name, `.npz` otherwise.
    ///
    /// # Errors
    /// Names the file that cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let bytes = self.bytes(path.extension().is_some_and(|e| e == "safetensors"));
        output::write(path, &bytes.map_err(|what| Malformed::new(FileKind::Trace, path, what))?)
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// What the container's writer says.
    pub fn bytes(&self, as_safetensors: bool) -> Result<Vec<u8>, String> {
        let header = serde_json::to_string(&self.header).map_err(|e| format!("header: {e}"))?;
        if as_safetensors { safetensors::write(&header, &self.tensors) } else { npz::write(&header, &self.tensors) }
    }

    /// The recorded steps, in order.
    pub fn steps(&self) -> Vec<usize> {
        let steps: BTreeSet<usize> = self.tensors.keys().filter_map(|name| step_of(name)).collect();
        steps.into_iter().collect()
    }

    /// The names of the blocks: what stands between `block/` and the last part.
    pub fn blocks(&self) -> BTreeSet<String> {
        let blocks = self.tensors.keys().filter_map(|name| name.strip_prefix("block/"));
        blocks.filter_map(|rest| rest.rsplit_once('/')).map(|(block, _)| block.to_owned()).collect()
    }

    /// Refuses names that nothing would ever look at, so that a slip of the pen is no silence.
    fn check_names(&self) -> Result<(), String> {
        for name in self.tensors.keys() {
            let known = match name.split_once('/') {
                Some(("step", rest)) => match rest.split_once('/') {
                    Some((step, tensor)) if step.parse::<u32>().is_ok() => self.known(tensor),
                    _ => false,
                },
                Some(("block", rest)) => {
                    let kind = rest.split('/').next().unwrap_or_default();
                    BLOCKS.iter().any(|b| b.0 == kind && b.1.iter().any(|t| rest.ends_with(&format!("/{t}"))))
                }
                _ => false,
            };
            if !known {
                return Err(format!(
                    "tensor {name} has no name of a trace; see docs/trace.md, or call it step/N/extra/.."
                ));
            }
        }
        Ok(())
    }

    /// Whether a name after `step/N/` has a meaning.
    fn known(&self, name: &str) -> bool {
        let parameter = |rest: &str| {
            rest.strip_prefix("layer").and_then(|r| r.split_once('/')).is_some_and(|(l, what)| {
                l.parse::<usize>().is_ok_and(|l| l >= 1 && l < self.header.widths.len()) && LAYER.contains(&what)
            })
        };
        ["extra/", "coins/", "wraps/"].iter().any(|prefix| name.starts_with(prefix))
            || STEP.contains(&name)
            || parameter(name)
            || name.strip_prefix("start/").is_some_and(|rest| {
                parameter(rest) && PARAMETERS.contains(&rest.split('/').next_back().unwrap_or_default())
            })
    }
}

/// Tensors of a step outside of its layers.
const STEP: [&str; 11] = [
    "input",
    "rows",
    "labels",
    "logits",
    "head_gradient",
    "head/maximum",
    "head/exp",
    "head/sum",
    "head/positive",
    "head/reciprocal",
    "head/quotient",
];

/// The tensors with which a layer starts a step.
pub const PARAMETERS: [&str; 4] = reference::spec::LAYER_NAMES;

/// Tensors of a layer.
const LAYER: [&str; 9] = [
    "weights",
    "bias",
    "weight_velocity",
    "bias_velocity",
    "pre_activation",
    "activation",
    "activation_gradient",
    "dW",
    "db",
];

/// Kinds of blocks and their tensors: operations outside of a training step.
pub const BLOCKS: [(&str, &[&str]); 6] = [
    ("truncate", &["x", "result"]),
    ("multiply", &["x", "y", "result"]),
    ("matmul", &["x", "y", "result"]),
    ("exp", &["x", "result"]),
    ("divide", &["x", "y", "result"]),
    ("log", &["x", "result"]),
];

/// Whether bytes begin as a JSON object does. A .safetensors file begins with a length, whose highest bytes are 0.
fn is_json(bytes: &[u8]) -> bool {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    text.trim_ascii_start().starts_with(b"{") && !bytes.iter().take(8).any(|&b| b == 0)
}

fn step_of(name: &str) -> Option<usize> {
    name.strip_prefix("step/")?.split_once('/')?.0.parse().ok()
}

#[cfg(test)]
mod tests;

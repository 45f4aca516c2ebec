//! A trace as [safetensors](https://docs.rs/safetensors): the tensors by name, and the header as the metadata entry
//! `header`.

use super::npz::Contents;
use super::tensor::{Tensor, Values};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::collections::{BTreeMap, HashMap};

/// Reads a file. Its own header is checked against the bytes that are there before anything is read.
///
/// # Errors
/// One line that names the tensor and what is wrong with it.
pub fn read(bytes: &[u8]) -> Result<Contents, String> {
    let damaged = |e: safetensors::SafeTensorError| format!("it is no safetensors file, or damaged ({e})");
    let file = SafeTensors::deserialize(bytes).map_err(damaged)?;
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let header = metadata.metadata().as_ref().and_then(|m| m.get("header").cloned());
    let header = header.ok_or("its metadata have no entry `header`; see docs/trace.md")?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.tensors() {
        let tensor = tensor(&view).map_err(|what| format!("tensor {name}: {what}"))?;
        tensors.insert(name, tensor);
    }
    Ok((header, tensors))
}

fn tensor(view: &TensorView) -> Result<Tensor, String> {
    macro_rules! read {
        ($kind:ident, $t:ty, $as:expr) => {{
            let (chunks, _) = view.data().as_chunks::<{ size_of::<$t>() }>();
            Values::$kind(chunks.iter().map(|c| $as(<$t>::from_le_bytes(*c))).collect())
        }};
    }
    let values = match view.dtype() {
        Dtype::I64 => read!(Units, i64, |v| v),
        Dtype::U64 => read!(Units, u64, |v| v as i64),
        Dtype::I32 => read!(Units, i32, i64::from),
        Dtype::U32 => read!(Units, u32, i64::from),
        Dtype::I16 => read!(Units, i16, i64::from),
        Dtype::U16 => read!(Units, u16, i64::from),
        Dtype::I8 => read!(Units, i8, i64::from),
        Dtype::U8 | Dtype::BOOL => read!(Units, u8, i64::from),
        Dtype::F64 => read!(Doubles, f64, |v| v),
        Dtype::F32 => read!(Singles, f32, |v| v),
        other => return Err(format!("its type is {other:?}; integers, F32 and F64 are read")),
    };
    Tensor::new(view.shape().to_vec(), values).ok_or_else(|| "its data do not fit its shape".into())
}

/// Writes a file.
///
/// # Errors
/// What the writer says.
pub fn write(header: &str, tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>, String> {
    let bytes = |t: &Tensor| -> (Dtype, Vec<u8>) {
        match &t.values {
            Values::Units(v) => (Dtype::I64, v.iter().flat_map(|v| v.to_le_bytes()).collect()),
            Values::Doubles(v) => (Dtype::F64, v.iter().flat_map(|v| v.to_le_bytes()).collect()),
            Values::Singles(v) => (Dtype::F32, v.iter().flat_map(|v| v.to_le_bytes()).collect()),
        }
    };
    let data: Vec<_> = tensors.iter().map(|(name, t)| (name, t, bytes(t))).collect();
    let views = data
        .iter()
        .map(|(name, t, (dtype, data))| Ok((name.as_str(), TensorView::new(*dtype, t.shape.clone(), data)?)))
        .collect::<Result<Vec<_>, safetensors::SafeTensorError>>()
        .map_err(|e| e.to_string())?;
    let metadata = HashMap::from([("header".to_owned(), header.to_owned())]);
    safetensors::serialize(views, Some(metadata)).map_err(|e| e.to_string())
}

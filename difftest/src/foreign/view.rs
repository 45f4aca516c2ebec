//! One step of a trace, with the shapes of its tensors checked.

use super::number::Number;
#[cfg(feature = "mnist")]
use crate::generate;
use crate::trace::header::Header;
#[cfg(feature = "mnist")]
use crate::trace::header::Numbers;
use crate::trace::{TraceFile, Values};
#[cfg(feature = "mnist")]
use ndarray::Array2;
use std::collections::BTreeMap;

/// The tensors of one step, and what the step before left behind.
#[derive(Debug, Clone)]
pub struct View<'t> {
    /// The trace's header.
    pub header: &'t Header,
    /// The number of the step, from 0.
    pub step: usize,
    /// Rows of the batch; 0 if no tensor tells.
    pub rows: usize,
    /// Class of each row, if the trace has them.
    pub labels: Option<Vec<usize>>,
    tensors: BTreeMap<String, Number>,
    /// The input of the step before, for buffers that were not filled again.
    pub previous_input: Option<Number>,
}

impl<'t> View<'t> {
    /// Reads step `step`. What the step before computed stands in for parameters that this step does not name.
    ///
    /// # Errors
    /// A tensor of another shape than the network asks for, a label that names no class, or row numbers without a
    /// data set.
    pub fn new(trace: &'t TraceFile, step: usize, previous: Option<&View>) -> Result<Self, String> {
        let header = &trace.header;
        let prefix = format!("step/{step}/");
        let names = || trace.tensors.range(prefix.clone()..).take_while(|(name, _)| name.starts_with(&prefix));
        let mut view = View {
            header,
            step,
            rows: rows(trace, &prefix, header),
            labels: None,
            tensors: BTreeMap::new(),
            previous_input: previous.and_then(|p| p.get("input").cloned()),
        };
        for (full, tensor) in names() {
            let name = &full[prefix.len()..];
            if ["extra/", "coins/", "wraps/"].iter().any(|prefix| name.starts_with(prefix)) {
                continue;
            }
            match (name, &tensor.values) {
                ("labels", Values::Units(v)) => view.labels = Some(labels(v, view.rows, header, full)?),
                ("rows", Values::Units(v)) => view.fill_from_data(v, full)?,
                ("labels" | "rows", _) => return Err(format!("{full} has reals; it must have integers")),
                _ => {
                    let shape = view.shape(name).ok_or_else(|| format!("{full}: the network has no such layer"))?;
                    let number = Number::of(tensor, shape, header.scale(name)).ok_or_else(|| {
                        format!("{full} has shape {:?}; it must be {shape:?}, rows first", tensor.shape)
                    })?;
                    view.tensors.insert(name.into(), number);
                }
            }
        }
        if let Some(previous) = previous.filter(|p| p.step + 1 == step) {
            view.inherit(previous);
        }
        Ok(view)
    }

    /// A tensor by its name after `step/N/`.
    pub fn get(&self, name: &str) -> Option<&Number> {
        self.tensors.get(name)
    }

    /// The number of dense layers.
    pub fn layers(&self) -> usize {
        self.header.widths.len().saturating_sub(1)
    }

    /// The name of the output of layer `l`: logits for the last one.
    pub fn output_of(&self, l: usize) -> String {
        if l == self.layers() { "logits".into() } else { format!("layer{l}/pre_activation") }
    }

    /// The name of the input of layer `l`.
    pub fn input_of(&self, l: usize) -> String {
        if l == 1 { "input".into() } else { format!("layer{}/activation", l - 1) }
    }

    /// The name of the gradient with respect to the output of layer `l`.
    pub fn gradient_of(&self, l: usize) -> String {
        if l == self.layers() { "head_gradient".into() } else { format!("layer{l}/activation_gradient") }
    }

    /// Of these names those that the trace lacks.
    pub fn missing(&self, names: &[&str]) -> Vec<String> {
        let there = |name: &str| if name == "labels" { self.labels.is_some() } else { self.tensors.contains_key(name) };
        names.iter().filter(|n| !there(n)).map(|n| (*n).to_owned()).collect()
    }

    /// The shape that a tensor of this network must have; `None` if the network has no such tensor.
    fn shape(&self, name: &str) -> Option<(usize, usize)> {
        let widths = &self.header.widths;
        let classes = *widths.last()?;
        Some(match name {
            "input" => (self.rows, widths[0]),
            "logits" | "head_gradient" | "head/exp" | "head/positive" | "head/quotient" => (self.rows, classes),
            "head/maximum" | "head/sum" => (self.rows, 1),
            "head/reciprocal" => (2 * self.rows, 1),
            _ => {
                let rest = name.strip_prefix("start/").unwrap_or(name);
                let (l, what) = rest.strip_prefix("layer")?.split_once('/')?;
                let l: usize = l.parse().ok().filter(|&l| l >= 1 && l < widths.len())?;
                match what {
                    "weights" | "weight_velocity" | "dW" => (widths[l - 1], widths[l]),
                    "bias" | "bias_velocity" | "db" => (1, widths[l]),
                    _ => (self.rows, widths[l]),
                }
            }
        })
    }

    /// Parameters that a step leaves are those that the next one starts from.
    fn inherit(&mut self, previous: &View) {
        for l in 1..=self.layers() {
            for what in crate::trace::file::PARAMETERS {
                let start = format!("start/layer{l}/{what}");
                let left = previous.tensors.get(&format!("layer{l}/{what}"));
                if let (false, Some(left)) = (self.tensors.contains_key(&start), left) {
                    self.tensors.insert(start, left.clone());
                }
            }
        }
    }

    /// The batch from the MNIST that ships with the project.
    #[cfg(not(feature = "mnist"))]
    fn fill_from_data(&mut self, _: &[i64], full: &str) -> Result<(), String> {
        Err(format!("{full}: this build has no MNIST; record the input, or build with the feature mnist"))
    }

    /// The batch from the MNIST that ships with the project.
    #[cfg(feature = "mnist")]
    fn fill_from_data(&mut self, rows: &[i64], full: &str) -> Result<(), String> {
        let data = fixtures::mnist().map_err(|e| e.to_string())?.train;
        let scale = self.header.pixel_scale.ok_or("header: rows need pixel_scale, by which pixels are divided")?;
        let index = |&r: &i64| u32::try_from(r).ok().filter(|&r| (r as usize) < data.len());
        let rows: Vec<u32> = rows
            .iter()
            .map(|r| index(r).ok_or_else(|| format!("{full} has row {r}; MNIST has rows 0 to {}", data.len() - 1)))
            .collect::<Result<_, String>>()?;
        if self.header.widths.first() != Some(&data.inputs()) {
            return Err(format!("{full}: MNIST has {} inputs, the network another number", data.inputs()));
        }
        self.labels.get_or_insert_with(|| generate::labels(&data, &rows));
        let pixels: Vec<f64> =
            rows.iter().flat_map(|&r| data.image(r as usize)).map(|&p| f64::from(p) / scale).collect();
        let pixels = Array2::from_shape_vec((rows.len(), data.inputs()), pixels).map_err(|e| e.to_string())?;
        let number = match (self.header.numbers, self.header.fraction_bits) {
            (Numbers::Fixed, Some(f)) => {
                Number::Units { v: pixels.mapv(|p| (p * 2f64.powi(f as i32)).round() as i64), scale: f }
            }
            _ => Number::Reals { v: pixels, half_ulp: 0.0 },
        };
        self.tensors.entry("input".into()).or_insert(number);
        Ok(())
    }
}

/// Rows of the batch, from the first tensor that has them.
fn rows(trace: &TraceFile, prefix: &str, header: &Header) -> usize {
    let of = |name: &str| trace.tensors.get(&format!("{prefix}{name}"));
    let single = ["labels", "rows"].iter().find_map(|name| of(name)).map(|t| t.values.len());
    let by_columns = |name: &str, columns: Option<&usize>| Some(of(name)?.values.len() / (*columns?).max(1));
    single
        .or_else(|| by_columns("input", header.widths.first()))
        .or_else(|| by_columns("logits", header.widths.last()))
        .or_else(|| by_columns("head_gradient", header.widths.last()))
        .unwrap_or(header.batch)
}

fn labels(v: &[i64], rows: usize, header: &Header, full: &str) -> Result<Vec<usize>, String> {
    let classes = header.widths.last().copied().unwrap_or(0);
    let of = |l: i64| usize::try_from(l).ok().filter(|&l| l < classes);
    if v.len() != rows {
        return Err(format!("{full} has {} labels for {rows} rows; give the class of each row", v.len()));
    }
    v.iter()
        .map(|&l| of(l).ok_or_else(|| format!("{full} has class {l}; classes are 0 to {}", classes.max(1) - 1)))
        .collect()
}

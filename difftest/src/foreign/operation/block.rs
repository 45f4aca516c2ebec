//! Operations outside of a training step: `block/KIND/NAME/x`, `y`, `result`.

use super::head_parts::function;
use crate::foreign::allowed::Truncations;
use crate::foreign::exact::{Exact, Expected, product};
use crate::foreign::judged::Judged;
use crate::foreign::number::Number;
use crate::foreign::outcome::Outcome;
use crate::foreign::view::View;
use crate::trace::{Tensor, TraceFile};

/// The kind of a block, as a name that lives as long as the program.
fn kind(block: &str) -> Option<&'static str> {
    let name = block.split('/').next()?;
    crate::trace::file::BLOCKS.iter().map(|b| b.0).find(|k| *k == name)
}

/// Judges every block of a trace.
///
/// # Errors
/// Operands whose shapes do not fit each other.
pub fn judge(trace: &TraceFile, view: &View) -> Result<Vec<(&'static str, Outcome)>, String> {
    let mut list = Vec::new();
    for block in trace.blocks() {
        let Some(kind) = kind(&block) else { continue };
        list.push((kind, one(trace, view, &block, kind)?));
    }
    Ok(list)
}

fn one(trace: &TraceFile, view: &View, block: &str, kind: &'static str) -> Result<Outcome, String> {
    let name = |part: &str| format!("block/{block}/{part}");
    let read = |part: &str| {
        let name = name(part);
        trace.tensors.get(&name).map(|t| number(t, trace.header.scale(&name), &name)).transpose()
    };
    let (x, y, result) = (read("x")?, read("y")?, read("result")?);
    let needs_y = matches!(kind, "multiply" | "matmul" | "divide");
    let tensor = name("result");
    let (Some(x), Some(out), false) = (&x, &result, needs_y && y.is_none()) else {
        let there = [("x", x.is_some()), ("y", y.is_some() || !needs_y), ("result", result.is_some())];
        let lacks = there.iter().filter(|t| !t.1).map(|t| name(t.0)).collect();
        return Ok(Outcome::Missing { tensor, lacks });
    };
    let y = y.as_ref().unwrap_or(x);
    let fits = match kind {
        "matmul" => x.dim().1 == y.dim().0 && out.dim() == (x.dim().0, y.dim().1),
        "multiply" | "divide" => x.dim() == out.dim() && (y.dim() == x.dim() || y.dim() == (1, 1)),
        _ => x.dim() == out.dim(),
    };
    if !fits {
        return Err(format!(
            "block/{block}: x is {:?}, y {:?}, result {:?}: they do not fit",
            x.dim(),
            y.dim(),
            out.dim()
        ));
    }
    let at = (kind, tensor.as_str(), view.step);
    let header = &trace.header;
    let claims = header.claims;
    let judged = match kind {
        "truncate" => Judged::new(header, at, out, &super::relu::exactly(x), Truncations::Times(1)),
        "matmul" => Judged::new(header, at, out, &product(x, y, None), Truncations::DotProduct),
        "multiply" => Judged::new(header, at, out, &elementwise(x, y), Truncations::Times(1)),
        _ => {
            let (x, y) = (x.reals(), y.reals());
            let values: Vec<f64> = match kind {
                "exp" => x.iter().map(|v| v.exp()).collect(),
                "log" => x.iter().map(|v| v.ln()).collect(),
                _ if y.len() == 1 => x.iter().map(|v| v / y[[0, 0]]).collect(),
                _ => x.iter().zip(&y).map(|(v, y)| v / y).collect(),
            };
            let claim = match kind {
                "exp" => claims.exp,
                "log" => claims.log,
                _ => claims.division,
            };
            let arguments: Vec<f64> = x.iter().map(|v| v.abs()).collect();
            let judged = function(view, (kind, &tensor), out, claim, &values, |i| arguments[i]);
            // A column of quotients has a denominator a row.
            let denominators =
                if kind == "divide" && y.ncols() == 1 { y.iter().copied().collect() } else { Vec::new() };
            Judged { denominators, ..judged }
        }
    };
    Ok(Outcome::compared(judged))
}

/// A vector is a column: one element a row.
fn number(tensor: &Tensor, scale: u32, name: &str) -> Result<Number, String> {
    let dim = match tensor.shape[..] {
        [] => (1, 1),
        [n] => (n, 1),
        [rows, columns] => (rows, columns),
        _ => return Err(format!("{name} has {} dimensions; a block has at most 2", tensor.shape.len())),
    };
    Number::of(tensor, dim, scale).ok_or_else(|| format!("{name} has no shape of a block"))
}

fn elementwise(x: &Number, y: &Number) -> Expected {
    if let (Number::Units { v: xv, scale: sx }, Number::Units { v: yv, scale: sy }) = (x, y) {
        let factor = |i: usize| if yv.len() == 1 { yv[[0, 0]] } else { yv[[i / yv.ncols(), i % yv.ncols()]] };
        let v = xv.iter().enumerate().map(|(i, &x)| i128::from(x) * i128::from(factor(i))).collect();
        return Expected { exact: Exact::Integer { v, scale: sx + sy }, ..Expected::integers(x.dim(), vec![], 0) };
    }
    let (xr, yr) = (x.reals(), y.reals());
    let factor = |i: usize| if yr.len() == 1 { yr[[0, 0]] } else { yr[[i / yr.ncols(), i % yr.ncols()]] };
    let v: Vec<f64> = xr.iter().enumerate().map(|(i, x)| x * factor(i)).collect();
    let magnitude = v.iter().map(|v| v.abs()).collect();
    Expected::reals(x.dim(), v, magnitude, 1, x.half_ulp() + y.half_ulp())
}

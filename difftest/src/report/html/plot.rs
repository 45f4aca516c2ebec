//! Line plots as inline SVG.

use super::escape;
use super::ticks::{Axis, label, ticks};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// How a line is drawn: colour 1 to 6 of the style sheet, and whether it is dashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stroke {
    /// 1 to 5 for series, 6 for limits.
    pub colour: u8,
    /// Whether the line is dashed.
    pub dashed: bool,
}

impl Stroke {
    fn code(self) -> RGBColor {
        RGBColor(0, 0, self.colour + if self.dashed { 16 } else { 0 })
    }

    fn hex(self) -> String {
        let RGBColor(r, g, b) = self.code();
        format!("#{r:02X}{g:02X}{b:02X}")
    }
}

/// One line of a plot.
#[derive(Debug, Clone)]
pub struct Series {
    /// The name of the line in the legend.
    pub name: String,
    /// The colour of the line, and whether it is dashed.
    pub stroke: Stroke,
    /// The points (x, y), by increasing x.
    pub points: Vec<(f64, f64)>,
}

/// One plot with its axes and lines.
#[derive(Debug, Clone)]
pub struct Plot {
    /// The title above the plot.
    pub title: String,
    /// A description of what it shows, for those who do not see it.
    pub description: String,
    /// The label of the axis, with its unit.
    pub x: &'static str,
    /// The label of the axis, with its unit.
    pub y: &'static str,
    /// Powers of ten on the y axis; values must be positive.
    pub log: bool,
    /// Values below are drawn on this edge.
    pub lowest: Option<f64>,
    /// The lines of the plot.
    pub series: Vec<Series>,
}

const SIZE: (u32, u32) = (480, 320);

impl Plot {
    /// The figure; nothing if there is nothing to draw.
    pub fn markup(&self) -> String {
        let scale = |v: f64| if self.log { v.log10() } else { v };
        let clamp = |v: f64| self.lowest.map_or(v, |l| v.max(l));
        let visible = |&(x, y): &(f64, f64)| x.is_finite() && y.is_finite() && (!self.log || y > 0.0);
        let lines: Vec<(Stroke, Vec<(f64, f64)>)> = self
            .series
            .iter()
            .map(|s| (s.stroke, s.points.iter().filter(|p| visible(p)).map(|&(x, y)| (x, scale(clamp(y)))).collect()))
            .collect();
        let all = || lines.iter().flat_map(|(_, l)| l);
        let range = |of: fn(&(f64, f64)) -> f64, pad: f64| {
            let (lo, hi) = all().map(of).fold((f64::MAX, f64::MIN), |(lo, hi), v| (lo.min(v), hi.max(v)));
            let pad = pad * if hi > lo { hi - lo } else { 1.0 };
            lo - pad..hi + pad
        };
        if all().next().is_none() {
            return String::new();
        }
        let mut svg = String::new();
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        // Drawing into a string cannot fail.
        let drawn = self.draw(&area, range(|p| p.0, 0.0), range(|p| p.1, 0.05), &lines);
        drop(area);
        if let Err(e) = drawn {
            return format!("<p>{}: {}</p>", escape(&self.title), escape(&e));
        }
        let id = self.id();
        let labelled = format!(
            "<svg role=\"img\" aria-labelledby=\"{id}t {id}d\"><title id=\"{id}t\">{}</title><desc \
             id=\"{id}d\">{}</desc>",
            escape(&self.title),
            escape(&self.description)
        );
        let (head, rest) = svg.split_once('>').unwrap_or((&svg, ""));
        let (open, labels) = labelled.split_once('>').unwrap_or((&labelled, ""));
        let attributes = head.trim_start_matches("<svg");
        format!(
            "<figure>\n{open}{attributes}>{labels}{rest}<figcaption>{}</figcaption>\n</figure>",
            escape(&self.title)
        )
    }

    fn draw(
        &self,
        area: &DrawingArea<SVGBackend, Shift>,
        x: std::ops::Range<f64>,
        y: std::ops::Range<f64>,
        lines: &[(Stroke, Vec<(f64, f64)>)],
    ) -> Result<(), String> {
        let whole = lines.iter().flat_map(|(_, l)| l).all(|(x, _)| x.fract() == 0.0);
        let (x_ticks, y_ticks) = (ticks(&x, false, whole), ticks(&y, self.log, false));
        let mut chart = ChartBuilder::on(area)
            .margin(8)
            .x_label_area_size(48)
            .y_label_area_size(72)
            .build_cartesian_2d(Axis::new(x, &x_ticks), Axis::new(y, &y_ticks))
            .map_err(|e| e.to_string())?;
        chart
            .configure_mesh()
            .x_desc(self.x)
            .y_desc(self.y)
            .max_light_lines(0)
            .bold_line_style(BLACK.mix(0.15))
            .axis_style(BLACK)
            .label_style(("sans-serif", 16))
            .axis_desc_style(("sans-serif", 17))
            .x_label_formatter(&|v| label(&x_ticks, *v))
            .y_label_formatter(&|v| label(&y_ticks, *v))
            .draw()
            .map_err(|e| e.to_string())?;
        for (stroke, points) in lines {
            let series = LineSeries::new(points.iter().copied(), stroke.code().stroke_width(2));
            chart.draw_series(series).map_err(|e| e.to_string())?;
            // The number of its colour, for those who do not see colours: at another place on each line, so that they
            // keep apart.
            if let Some(&at) = points.get(points.len() * usize::from(stroke.colour) / 7) {
                let style = ("sans-serif", 15).into_text_style(area).pos(Pos::new(HPos::Center, VPos::Bottom));
                let number = Text::new(stroke.colour.to_string(), at, style);
                chart.draw_series(std::iter::once(number)).map_err(|e| e.to_string())?;
            }
        }
        area.present().map_err(|e| e.to_string())
    }

    /// The same for the same plot, different for different ones.
    fn id(&self) -> String {
        let mut hasher = DefaultHasher::new();
        (&self.title, self.x, self.y).hash(&mut hasher);
        format!("p{:x}", hasher.finish())
    }
}

/// The legend of several plots: the name of every line, each once.
pub fn legend(plots: &[Plot]) -> String {
    let mut seen = Vec::new();
    for s in plots.iter().flat_map(|p| &p.series) {
        if !seen.contains(&(&s.name, s.stroke)) {
            seen.push((&s.name, s.stroke));
        }
    }
    let item = |(name, stroke): (&String, Stroke)| {
        let hex = stroke.hex();
        format!(
            "<li><svg viewBox=\"0 0 36 12\" aria-hidden=\"true\"><line x1=\"0\" y1=\"6\" x2=\"36\" y2=\"6\" \
             stroke-width=\"3\" \
             stroke=\"{hex}\"/></svg> {} {}</li>",
            stroke.colour,
            escape(name)
        )
    };
    format!("<ul class=\"legend\">{}</ul>", seen.into_iter().map(item).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, f64)>) -> Plot {
        Plot {
            title: "a < b".into(),
            description: "rises".into(),
            x: "epochs",
            y: "accuracy, %",
            log: false,
            lowest: Some(50.0),
            series: vec![Series { name: "softmax".into(), stroke: Stroke { colour: 2, dashed: true }, points }],
        }
    }

    #[test]
    fn a_plot_is_labelled_and_uses_the_codes_of_the_style_sheet() {
        let markup = plot(vec![(1.0, 10.0), (2.0, 90.0), (3.0, 95.0)]).markup();
        for part in
            ["role=\"img\"", "<title id=", "a &lt; b</title>", "rises</desc>", "epochs", "accuracy, %", "#000012"]
        {
            assert!(markup.contains(part), "{part}:\n{markup}");
        }
        assert!(include_str!("style.css").contains("svg [stroke=\"#000012\"]"));
        assert_eq!(markup.matches("stroke=\"#000012\"").count(), 1);
        assert!(legend(&[plot(vec![])]).contains("2 softmax"));
        assert!(markup.contains(">\n2\n</text>"), "the line says which it is without its colour:\n{markup}");
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        assert_eq!(plot(vec![]).markup(), "");
        assert_eq!(plot(vec![(1.0, f64::NAN)]).markup(), "");
        let log = Plot { log: true, lowest: None, ..plot(vec![(1.0, 0.0), (2.0, 1e-9), (3.0, 10.0)]) };
        assert!(log.markup().contains("1e-9") || log.markup().contains("1e-8"), "{}", log.markup());
    }
}

//! Points on a plane, in groups, with the names of as many as there is room for.

use super::{Anchor, Colour, Figure, Form, MARGIN, Mark, Paint, Size, cut};

/// Width of the plane, its height at least and at most, and what stays free at its rim.
const PLANE: f64 = 960.0;
const HEIGHT: (f64, f64) = (360.0, 760.0);
const RIM: f64 = 28.0;
const BELOW: f64 = 36.0;
const LEGEND_LINE: f64 = 18.0;
/// Radius of the smallest and of the largest mark, and how many of them keep it; more are smaller.
const RADIUS: (f64, f64) = (3.0, 9.0);
const LARGE: f64 = 300.0;
/// Characters of a name at a mark.
const LONGEST: usize = 26;
/// Height of a name and what of it is above the baseline.
const NAME: (f64, f64) = (13.0, 10.0);
const FORMS: [Form; 3] = [Form::Disc, Form::Square, Form::Ring];

/// Points of several groups.
#[derive(Debug)]
pub struct Scatter<'a> {
    /// What is shown.
    pub title: &'a str,
    /// What the plane means; stands below it.
    pub note: &'a str,
    /// What groups are called together: branches.
    pub kind: &'a str,
    /// Names of the groups. The first ones have a look of their own, the rest have one together.
    pub groups: Vec<&'a str>,
    /// The points; names are given to the first ones first, and later ones are drawn over them.
    pub points: Vec<Dot<'a>>,
}

/// A point.
#[derive(Debug)]
pub struct Dot<'a> {
    /// Where it is; the second axis goes up.
    pub place: [f64; 2],
    /// The number of its group.
    pub group: usize,
    /// Its size, from 0 to 1.
    pub size: f64,
    /// What stands beside it if there is room.
    pub name: &'a str,
    /// What a reader sees who points at it.
    pub title: String,
}

impl Scatter<'_> {
    /// The figure.
    #[must_use]
    pub fn draw(&self) -> Figure {
        let (places, height) = self.places();
        let legend = self.legend();
        let below = Figure::TOP + height + BELOW;
        // Long names need more room beside each other.
        let columns = if legend.iter().any(|(_, name)| name.chars().count() > 36) { 2 } else { 3 };
        let lines = legend.len().div_ceil(columns) as f64;
        let bottom = below + lines * LEGEND_LINE + MARGIN;
        let mut figure = Figure::new(self.title, PLANE + 2.0 * MARGIN, bottom);
        self.draw_frame(&mut figure, height);
        let shrink = (LARGE / self.points.len().max(1) as f64).sqrt().clamp(0.4, 1.0);
        let marks: Vec<Mark> = (self.points.iter().zip(places))
            .map(|(dot, (x, y))| {
                let (form, paint) = look(dot.group);
                let radius = shrink * (RADIUS.0 + (RADIUS.1 - RADIUS.0) * dot.size.clamp(0.0, 1.0));
                Mark { x, y, radius, form, paint, title: dot.title.clone() }
            })
            .collect();
        let names = self.names(&marks, height);
        marks.into_iter().for_each(|mark| figure.mark(mark));
        for (x, y, name) in names {
            figure.text((x, y), &name, Size::Normal, Anchor::Start, Paint::Ink);
        }
        for (n, (group, name)) in legend.into_iter().enumerate() {
            let x = MARGIN + (n % columns) as f64 * PLANE / columns as f64;
            let y = below + ((n / columns) as f64 + 0.5) * LEGEND_LINE;
            let (form, paint) = look(group);
            figure.mark(Mark { x: x + 6.0, y: y - 4.0, radius: 5.0, form, paint, title: String::new() });
            figure.text((x + 18.0, y), &name, Size::Normal, Anchor::Start, Paint::Ink);
        }
        figure
    }

    fn draw_frame(&self, figure: &mut Figure, height: f64) {
        let (left, right) = (MARGIN, MARGIN + PLANE);
        let (top, bottom) = (Figure::TOP, Figure::TOP + height);
        let corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)];
        figure.line(corners, 1.0, Paint::Grid);
        figure.label((left, bottom + 18.0), self.note, Anchor::Start);
    }

    /// Places in the figure, on one scale for both axes, and the height of the plane.
    fn places(&self) -> (Vec<(f64, f64)>, f64) {
        let ends = |axis: usize| {
            let values = self.points.iter().map(|dot| dot.place[axis]).filter(|value| value.is_finite());
            values.fold(None, |ends: Option<(f64, f64)>, value| {
                let (low, high) = ends.unwrap_or((value, value));
                Some((low.min(value), high.max(value)))
            })
        };
        let [(left, right), (low, high)] = [0, 1].map(|axis| ends(axis).unwrap_or((0.0, 0.0)));
        let (across, up) = (right - left, high - low);
        let fits = |span: f64, room: f64| if span > 0.0 { (room - 2.0 * RIM) / span } else { f64::INFINITY };
        let scale = fits(across, PLANE).min(fits(up, HEIGHT.1));
        let scale = if scale.is_finite() { scale } else { 0.0 };
        let height = (up * scale + 2.0 * RIM).clamp(HEIGHT.0, HEIGHT.1);
        let place = |value: f64, middle: f64| if value.is_finite() { (value - middle) * scale } else { 0.0 };
        let places = self.points.iter().map(|dot| {
            let x = MARGIN + PLANE / 2.0 + place(dot.place[0], f64::midpoint(left, right));
            let y = Figure::TOP + height / 2.0 - place(dot.place[1], f64::midpoint(low, high));
            (x, y)
        });
        (places.collect(), height)
    }

    /// Names with the places of their beginnings: those that meet no mark and no other name.
    fn names(&self, marks: &[Mark], height: f64) -> Vec<(f64, f64, String)> {
        let mut taken = Taken::new(height);
        for mark in marks {
            taken.take(
                mark.x - mark.radius,
                mark.y - mark.radius,
                mark.x + mark.radius,
                mark.y + mark.radius,
            );
        }
        let mut names = Vec::new();
        for (dot, mark) in self.points.iter().zip(marks) {
            let name = cut(dot.name, LONGEST);
            let width = Size::Normal.width(&name);
            let aside = mark.radius + 3.0;
            let (right, left, middle) = (mark.x + aside, mark.x - aside - width, mark.x - width / 2.0);
            let (level, above, below) =
                (mark.y - NAME.0 / 2.0, mark.y - aside - NAME.0 + 2.0, mark.y + aside - 2.0);
            let corners = [
                (right, level),
                (left, level),
                (middle, above),
                (middle, below),
                (right - 4.0, above),
                (right - 4.0, below),
                (left + 4.0, above),
                (left + 4.0, below),
            ];
            let free = corners.into_iter().find(|(x, y)| taken.is_free(*x, *y, x + width, y + NAME.0));
            if let Some((x, y)) = free.filter(|_| !name.is_empty()) {
                taken.take(x, y, x + width, y + NAME.0);
                names.push((x, y + NAME.1, name));
            }
        }
        names
    }

    /// Groups with what stands beside their mark; nothing if there is only one.
    fn legend(&self) -> Vec<(usize, String)> {
        if self.groups.len() < 2 {
            return Vec::new();
        }
        let own = FORMS.len() * Paint::N_SERIES;
        let mut lines: Vec<(usize, String)> =
            self.groups.iter().take(own).map(|name| cut(name, 56)).enumerate().collect();
        if self.groups.len() > own {
            lines.push((own, format!("{} more {}", self.groups.len() - own, self.kind)));
        }
        lines
    }
}

/// Colours first, then other forms.
fn look(group: usize) -> (Form, Paint) {
    match FORMS.get(group / Paint::N_SERIES) {
        Some(form) => (*form, Paint::series(group)),
        None => (Form::Disc, Paint::Of(Colour::NOTHING)),
    }
}

/// Which parts of the plane are taken.
struct Taken {
    columns: usize,
    rows: usize,
    cells: Vec<bool>,
}

impl Taken {
    const CELL: f64 = 2.0;

    fn new(height: f64) -> Self {
        let (columns, rows) = ((PLANE / Self::CELL) as usize, (height / Self::CELL) as usize);
        Self { columns, rows, cells: vec![false; columns * rows] }
    }

    /// The cells of a part of the figure, as columns and rows; `None` if some of it is not in the plane.
    fn cells(&self, left: f64, top: f64, right: f64, bottom: f64) -> Option<[std::ops::Range<usize>; 2]> {
        let cell = |length: f64, start: f64| ((length - start) / Self::CELL).floor();
        let [left, right] = [left, right].map(|x| cell(x, MARGIN));
        let [top, bottom] = [top, bottom].map(|y| cell(y, Figure::TOP));
        let inside = left >= 0.0 && top >= 0.0 && right < self.columns as f64 && bottom < self.rows as f64;
        inside.then(|| [left as usize..right as usize + 1, top as usize..bottom as usize + 1])
    }

    fn is_free(&self, left: f64, top: f64, right: f64, bottom: f64) -> bool {
        self.cells(left, top, right, bottom).is_some_and(|[columns, mut rows]| {
            rows.all(|row| !self.cells[row * self.columns..][columns.clone()].contains(&true))
        })
    }

    fn take(&mut self, left: f64, top: f64, right: f64, bottom: f64) {
        if let Some([columns, rows]) = self.cells(left, top, right, bottom) {
            for row in rows {
                self.cells[row * self.columns..][columns.clone()].fill(true);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dot(place: [f64; 2], group: usize, name: &str) -> Dot<'_> {
        Dot { place, group, size: 0.5, name, title: format!("{name} & more") }
    }

    fn scatter<'a>(groups: Vec<&'a str>, points: Vec<Dot<'a>>) -> Scatter<'a> {
        Scatter { title: "Labels", note: "a note", kind: "branches", groups, points }
    }

    #[test]
    fn points_have_the_looks_of_their_groups_and_titles() {
        let groups: Vec<String> = (0..25).map(|n| format!("group {n}")).collect();
        let points = (0..25).map(|n| dot([n as f64, (n % 5) as f64], n, "x<y")).collect();
        let figure = scatter(groups.iter().map(String::as_str).collect(), points).draw();
        let svg = figure.to_svg().to_string();
        for text in
            [">group 20<", ">4 more branches<", ">a note<", ">x&lt;y<", "<title>x&lt;y &amp; more</title>"]
        {
            assert!(svg.contains(text), "{text} is not in {svg}");
        }
        assert!(!svg.contains(">group 21<"), "{svg}");
        for n in 0..Paint::N_SERIES {
            let colour = Paint::series(n).colour().hex();
            assert!(
                svg.matches(&format!("=\"{colour}\"")).count() >= 6,
                "three points, three names: {colour}"
            );
        }
        assert!(svg.contains(&Colour::NOTHING.hex()), "{svg}");
    }

    #[test]
    fn one_scale_holds_for_both_axes() {
        let points = vec![dot([0.0, 0.0], 0, "a"), dot([4.0, 0.0], 0, "b"), dot([0.0, 1.0], 0, "c")];
        let (places, height) = scatter(Vec::new(), points).places();
        let (across, up) = (places[1].0 - places[0].0, places[0].1 - places[2].1);
        assert!((across - 4.0 * up).abs() < 1e-9 && (across - (PLANE - 2.0 * RIM)).abs() < 1e-9);
        assert_eq!(height, HEIGHT.0);
    }

    #[test]
    fn the_first_points_get_names_and_names_do_not_meet() {
        let names: Vec<String> = (0..400).map(|n| format!("label {n}")).collect();
        let points =
            (0..400).map(|n| dot([(n * 37 % 101) as f64, (n * 53 % 89) as f64], 0, &names[n])).collect();
        let scatter = scatter(Vec::new(), points);
        let (places, height) = scatter.places();
        let marks: Vec<Mark> = (places.iter())
            .map(|&(x, y)| Mark {
                x,
                y,
                radius: 4.0,
                form: Form::Disc,
                paint: Paint::Ink,
                title: String::new(),
            })
            .collect();
        let found = scatter.names(&marks, height);
        assert!(found.len() > 50 && found.len() < 400, "{}", found.len());
        assert!(found[0].2 == "label 0" && found[1].2 == "label 1", "{:?}", &found[..2]);
        let boxes: Vec<[f64; 4]> = (found.iter())
            .map(|(x, y, name)| [*x, y - NAME.1, x + Size::Normal.width(name), y - NAME.1 + NAME.0])
            .collect();
        let meet = |a: &[f64; 4], b: &[f64; 4]| a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
        for (n, a) in boxes.iter().enumerate() {
            assert!(boxes[..n].iter().all(|b| !meet(a, b)));
            assert!(a[0] >= MARGIN && a[2] <= MARGIN + PLANE && a[1] >= Figure::TOP);
            assert!(marks.iter().all(|mark| !meet(a, &[mark.x, mark.y, mark.x, mark.y])));
        }
    }

    #[test]
    fn few_points_and_no_numbers_can_be_drawn() {
        for places in
            [vec![], vec![[1.0, 2.0]], vec![[f64::NAN, 1.0], [0.0, f64::INFINITY]], vec![[0.0, 0.0]; 3]]
        {
            let points = places.into_iter().map(|place| dot(place, 0, "a")).collect();
            let figure = scatter(vec!["all"], points).draw();
            assert!(!figure.to_svg().as_str().contains("NaN"));
        }
    }
}

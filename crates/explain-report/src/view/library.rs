//! What there is to see, and pages of it.

use super::error::ViewError;
use crate::examine::FlowSelection;
use crate::page::{ExplainedPage, whole_page};
use farpace_http::HttpBody;
use farpace_report::{Exploration, Page};
use serde_json::Value;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Files of a directory that are listed.
const MAX_FILES: usize = 500;
/// Captures and traces whose packets are in memory at the same time; another one takes the place of the
/// oldest.
const MAX_OPEN: usize = 4;
/// Largest report that is served.
const MAX_REPORT: u64 = 64 << 20;
/// Points of one series in one answer.
pub(super) const MAX_SLICE: usize = 8_000;

/// The kind of a file, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FileKind {
    Report,
    Packets,
}

fn kind(path: &Path) -> Option<FileKind> {
    let name = path.file_name()?.to_str()?;
    let plain = name.trim_end_matches(".gz").trim_end_matches(".zst");
    let ends = |ends: &[&str]| ends.iter().any(|end| plain.ends_with(end));
    match () {
        () if name.ends_with(".html") => Some(FileKind::Report),
        () if ends(&[".pcap", ".pcapng", ".cap"]) || name.ends_with(".parquet") => Some(FileKind::Packets),
        () => None,
    }
}

/// Files, and those that are open.
#[derive(Debug)]
pub struct ViewLibrary {
    selection: FlowSelection,
    files: Vec<(PathBuf, FileKind)>,
    title: String,
    /// One file was asked for: its page is the first.
    single: bool,
    open: VecDeque<(usize, ExplainedPage)>,
}

impl ViewLibrary {
    /// Finds what there is to see.
    ///
    /// # Errors
    /// Nothing, or a path that is not there.
    pub fn open(path: &Path, selection: FlowSelection) -> Result<Self, ViewError> {
        let single = !fs::metadata(path).map_err(ViewError::read(path))?.is_dir();
        let mut files = Vec::new();
        if single {
            files.push((path.to_owned(), kind(path).unwrap_or(FileKind::Packets)));
        } else {
            for entry in fs::read_dir(path).map_err(ViewError::read(path))?.take(10 * MAX_FILES) {
                let file = entry.map_err(ViewError::read(path))?.path();
                if let Some(kind) = kind(&file).filter(|_| file.is_file()) {
                    files.push((file, kind));
                }
            }
            files.sort();
            files.truncate(MAX_FILES);
        }
        if files.is_empty() {
            return Err(ViewError::Nothing(path.to_owned()));
        }
        let mut library = ViewLibrary {
            selection,
            files,
            title: path.display().to_string(),
            single,
            open: VecDeque::new(),
        };
        if single && library.files.first().is_some_and(|(_, kind)| *kind == FileKind::Packets) {
            // A file that cannot be read should be told now.
            library.packets(0, "")?;
            library.open.clear();
        }
        Ok(library)
    }

    /// The page that comes first. `root` is the beginning of all addresses.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub(super) fn index(&mut self, root: &str) -> Result<HttpBody, ViewError> {
        if self.single {
            return self.page(0, root);
        }
        let mut page = Page::new(&self.title);
        page.paragraph(
            "Reports are those of the commands that wrote this directory. Captures and traces are \
             opened when they are chosen; large ones take a moment.",
        );
        for (heading, kind) in [("Reports", FileKind::Report), ("Captures and traces", FileKind::Packets)] {
            let of_kind: Vec<usize> = (0..self.files.len()).filter(|at| self.files[*at].1 == kind).collect();
            if !of_kind.is_empty() {
                page.heading(heading);
            }
            for at in of_kind {
                let name = self.files[at].0.file_name().unwrap_or_default().to_string_lossy().into_owned();
                page.link(&name, &format!("{root}open/{at}"));
            }
        }
        Ok(page.render().into())
    }

    /// The page of a file.
    ///
    /// # Errors
    /// No such file, or one that cannot be read.
    pub(super) fn page(&mut self, at: usize, root: &str) -> Result<HttpBody, ViewError> {
        let Some((path, kind)) = self.files.get(at) else { return Err(ViewError::NoFile) };
        match kind {
            FileKind::Report => {
                let file = File::open(path).map_err(ViewError::read(path))?;
                let len = file.metadata().map_err(ViewError::read(path))?.len();
                if len > MAX_REPORT {
                    return Err(ViewError::LargeReport { file: path.clone(), max: MAX_REPORT });
                }
                Ok(HttpBody::File(file, len))
            }
            FileKind::Packets => Ok(self.packets(at, root)?.html.clone().into()),
        }
    }

    /// A part of a figure: of each panel each series, as JSON.
    ///
    /// # Errors
    /// No such figure, or a file that cannot be read.
    pub(super) fn slice(
        &mut self,
        at: usize,
        figure: usize,
        from: f64,
        to: f64,
        root: &str,
    ) -> Result<Value, ViewError> {
        if self.files.get(at).is_none_or(|(_, kind)| *kind != FileKind::Packets) {
            return Err(ViewError::NoCapture);
        }
        let page = self.packets(at, root)?;
        let Some(exploration) = page.figures.get(figure).and_then(|f| f.explore.as_ref()) else {
            return Err(ViewError::NoFigure);
        };
        Ok(slice(exploration, from, to))
    }

    fn packets(&mut self, at: usize, root: &str) -> Result<&ExplainedPage, ViewError> {
        if !self.open.iter().any(|(open, _)| *open == at) {
            let Some((path, _)) = self.files.get(at) else { return Err(ViewError::NoFile) };
            let page = whole_page(path, &self.selection, &format!("{root}slice/{at}"))?;
            if self.open.len() >= MAX_OPEN {
                self.open.pop_front();
            }
            self.open.push_back((at, page));
        }
        let found = self.open.iter().find(|(open, _)| *open == at);
        found.map(|(_, page)| page).ok_or(ViewError::NoFile)
    }
}

fn slice(exploration: &Exploration, from: f64, to: f64) -> Value {
    let series = exploration
        .panels
        .iter()
        .map(|panel| panel.series.iter().map(|s| s.within(from, to).to_json(MAX_SLICE)).collect::<Value>());
    series.collect()
}

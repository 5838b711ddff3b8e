//! What this machine allows, and what would spoil results.
//!
//! [`machine`] looks at the system as a whole, [`network`] at its interfaces. Nothing is changed.

pub mod machine;
pub mod network;

use serde::Serialize;

/// What a finding means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Judgement {
    /// As it should be.
    Ok,
    /// It may spoil results or limit speed.
    Note,
    /// Something does not work for it.
    Problem,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    /// What.
    pub what: String,
    /// What it is here.
    pub value: String,
    /// What that means.
    pub judgement: Judgement,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<String>,
}

impl DoctorFinding {
    /// As it should be.
    pub fn ok(what: impl Into<String>, value: impl Into<String>) -> Self {
        DoctorFinding { what: what.into(), value: value.into(), judgement: Judgement::Ok, mend: None }
    }
    /// It may spoil results or limit speed; `mend` says what helps.
    pub fn note(what: impl Into<String>, value: impl Into<String>, mend: impl Into<String>) -> Self {
        DoctorFinding {
            judgement: Judgement::Note,
            mend: Some(mend.into()),
            ..DoctorFinding::ok(what, value)
        }
    }
    /// Something does not work for it; `mend` says what helps.
    pub fn problem(what: impl Into<String>, value: impl Into<String>, mend: impl Into<String>) -> Self {
        DoctorFinding {
            judgement: Judgement::Problem,
            mend: Some(mend.into()),
            ..DoctorFinding::ok(what, value)
        }
    }
}

/// Findings as text, a line each, behind `cleaned`: what was taken away.
pub fn text(findings: &[DoctorFinding], cleaned: &[String]) -> String {
    let width = findings.iter().map(|finding| finding.what.chars().count()).max().unwrap_or(0);
    let mut text: String = cleaned.iter().map(|what| format!("taken away: {what}\n")).collect();
    for DoctorFinding { what, value, judgement, mend } in findings {
        let judgement = match judgement {
            Judgement::Ok => "ok     ",
            Judgement::Note => "note   ",
            Judgement::Problem => "PROBLEM",
        };
        text += &format!("{judgement}  {what:width$}  {value}\n");
        if let Some(mend) = mend {
            text += &format!("{:width$}  -> {mend}\n", "", width = width + 9);
        }
    }
    let count = |which| findings.iter().filter(|finding| finding.judgement == which).count();
    text + &match (count(Judgement::Problem), count(Judgement::Note)) {
        (0, 0) => "All is well.\n".to_owned(),
        (0, notes) => format!("No problem, {notes} to note.\n"),
        (problems, notes) => format!("{problems} PROBLEM(S), {notes} to note.\n"),
    }
}

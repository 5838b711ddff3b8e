//! `farpace gateway top`: the status, live on the terminal.

#![allow(clippy::disallowed_methods, reason = "it shows real time")]

use anyhow::{Result, bail};
use farpace_gateway_service::status::{fetch, summary, table};
use farpace_units::Span;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::Paragraph;
use ratatui::{DefaultTerminal, Frame};
use serde_json::Value;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The arguments of `farpace gateway top`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "q ends it.\n\nExamples:\n  farpace gateway top\n  farpace gateway top --every 5s")]
pub struct TopArgs {
    /// Update interval
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = crate::emulate::words::span)]
    every: Span,
}

/// `farpace gateway top`.
///
/// # Errors
/// No gateway runs, or this is no terminal.
pub fn run(args: &TopArgs) -> Result<ExitCode> {
    if !std::io::stdout().is_terminal() {
        bail!("this is no terminal: use `farpace gateway status`, with --json for programs");
    }
    fetch()?; // an error is told before the screen is taken
    let every = Duration::from_nanos(args.every.as_nanos()).max(Duration::from_millis(100));
    let mut terminal = ratatui::try_init()?;
    let ended = show(&mut terminal, every);
    ratatui::try_restore()?;
    ended?;
    Ok(ExitCode::SUCCESS)
}

fn show(terminal: &mut DefaultTerminal, every: Duration) -> Result<()> {
    loop {
        let looked = Instant::now();
        let state = fetch();
        terminal.draw(|frame| draw(frame, &state))?;
        loop {
            let left = every.saturating_sub(looked.elapsed());
            if left.is_zero() || !event::poll(left)? {
                break;
            }
            match event::read()? {
                Event::Key(key) => {
                    let interrupts =
                        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
                    if interrupts || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                        return Ok(());
                    }
                }
                Event::Resize(..) => _ = terminal.draw(|frame| draw(frame, &state))?,
                _ => {}
            }
        }
    }
}

fn draw(frame: &mut Frame<'_>, state: &Result<Vec<Value>>) {
    let [body, foot] = Layout::vertical([Constraint::Min(0), Constraint::Length(1)]).areas(frame.area());
    let lines: Vec<Line<'_>> = match state {
        Err(error) => vec![Line::from(format!("{error:#}"))],
        Ok(gateways) => gateways.iter().flat_map(|status| lines_of(status, body.height)).collect(),
    };
    frame.render_widget(Paragraph::new(lines), body);
    frame.render_widget(Paragraph::new("q: end").style(Style::new().add_modifier(Modifier::DIM)), foot);
}

fn lines_of(status: &Value, height: u16) -> Vec<Line<'static>> {
    let mut lines: Vec<_> = summary(status).into_iter().map(Line::from).collect();
    lines.push(Line::default());
    for (at, row) in table(status, usize::from(height)).into_iter().enumerate() {
        let style = if at == 0 { Style::new().add_modifier(Modifier::BOLD) } else { Style::new() };
        lines.push(Line::styled(row, style));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use serde_json::json;

    // Breaks: the live view shows nothing, or panics on a small terminal.
    #[test]
    fn the_screen_shows_the_status() {
        let state =
            Ok(vec![json!({ "pid": 7, "lan": ["eth0"], "wan": ["eth1"], "totals": { "connections": 3 } })]);
        for (width, height) in [(100, 20), (10, 3), (1, 1)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &state)).unwrap();
            let text = terminal.backend().to_string();
            assert_eq!(
                text.contains("Gateway 7: eth0 | eth1") && text.contains("q: end"),
                width == 100,
                "{text}"
            );
        }
    }
}

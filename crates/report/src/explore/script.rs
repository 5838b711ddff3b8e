//! The scripts of a page, and the policy that allows them alone.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustlavel_chart::plugin::CHART_JS;
use sha2::{Digest, Sha256};

/// What draws: Chart.js 4.5.1, as its authors publish it.
const LIBRARY: &str = CHART_JS;
/// What makes figures of a page's data with it.
const EXPLORE: &str = include_str!("explore.js");

/// The scripts as elements of a page.
pub(crate) fn scripts() -> String {
    format!("<script>{LIBRARY}</script>\n<script>{EXPLORE}</script>\n")
}

/// The value of `Content-Security-Policy` for a page: no script but those of [`scripts`], nothing from
/// elsewhere. A page without scripts allows none.
///
/// A page with finer data on its server may ask that server.
pub(crate) fn csp(with_scripts: bool, with_server: bool) -> String {
    let mut policy = "default-src 'none'; style-src 'unsafe-inline'".to_owned();
    if with_scripts {
        policy.push_str("; script-src");
        for script in [LIBRARY, EXPLORE] {
            policy.push_str(&format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(script))));
        }
    }
    if with_server {
        policy.push_str("; connect-src 'self'");
    }
    policy
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks: pages run exactly the script that Chart.js's authors published, not one that a crate changed.
    #[test]
    fn the_library_is_the_published_one() {
        let digest: String = Sha256::digest(LIBRARY).iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(digest, "ecc3cd1eeb8c34d2178e3f59fd63ec5a3d84358c11730af0b9958dc886d7652a");
    }

    /// Breaks: an element of a script ends where the script ends.
    #[test]
    fn scripts_do_not_end_their_elements() {
        for script in [LIBRARY, EXPLORE] {
            assert!(!script.to_ascii_lowercase().contains("</script") && !script.contains("<!--"));
        }
    }
}

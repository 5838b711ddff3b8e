//! What all runs of a paper assume besides what their cases say.

use crate::observe::{Setting, set};
use crate::world::PaperWorld;

/// A part of a run: its name for worlds, and the table of the scenario that it is.
pub(crate) type RunPart<'a> = (&'a str, String);

/// What all runs of a paper assume besides what their cases say: a world, and values from the user.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorldAssumptions {
    pub world: Option<&'static PaperWorld>,
    pub set: Vec<Setting>,
}

impl WorldAssumptions {
    /// Values from the user alone.
    pub fn literal(set: &[Setting]) -> Self {
        WorldAssumptions { world: None, set: set.to_vec() }
    }
    /// The same values in a world.
    pub fn within(&self, world: &'static PaperWorld) -> Self {
        WorldAssumptions { world: Some(world), set: self.set.clone() }
    }
    /// Changes the settings of a run that has these parts.
    pub fn apply(&self, settings: &mut Vec<Setting>, parts: &[RunPart<'_>]) {
        for assumed in self.world.into_iter().flat_map(|world| world.settings) {
            for (_, table) in parts.iter().filter(|(name, _)| *name == assumed.part) {
                let key = format!("{table}.{}", assumed.key);
                if assumed.value.is_empty() {
                    settings.retain(|(given, _)| *given != key);
                } else {
                    settings.push(set(key, assumed.value));
                }
            }
        }
        settings.extend(self.set.iter().cloned());
    }
    /// Names the world and the values, for measurements that are kept.
    pub fn inputs(&self) -> String {
        let world = self.world.map(|world| (world.name, world.settings));
        format!("{world:?} {:?}", self.set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::tests::WORLD;

    /// Breaks: an assumption reaches runs that have no such part, or not all that have it, or a value from
    /// the user does not win.
    #[test]
    fn settings_reach_the_parts_of_a_run() {
        let assumed = WorldAssumptions::literal(&[set("x.abc", "user")]).within(&WORLD);
        let mut settings = vec![set("x.slow", "1"), set("y.slow", "1")];
        let parts = [("sender", "x".to_owned()), ("sender", "y".to_owned()), ("host", "y".to_owned())];
        assumed.apply(&mut settings, &parts);
        let expected = [set("x.slow", "1"), set("x.abc", "off"), set("y.abc", "off"), set("x.abc", "user")];
        assert_eq!(settings, expected);
    }
}

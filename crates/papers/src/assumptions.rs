//! What all runs of a paper assume besides what their cases say.

use crate::observe::{Setting, set};
use crate::plausible::SCENARIO;
use crate::world::{CHOICE, PaperWorld};

/// A part of a run: its name for worlds, and the table of the scenario that it is.
pub(crate) type RunPart<'a> = (&'a str, String);

/// A value that a point of a search gives to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointSetting {
    /// The part of a run that has the key, as in worlds; [`SCENARIO`]: the key is a path of the scenario.
    pub part: String,
    /// The key within the part.
    pub key: String,
    /// Its value as scenarios write it.
    pub value: String,
}

/// What all runs of a paper assume besides what their cases say: a world, values from the user, and those of
/// a point of a search. The last one that names a key decides.
#[derive(Clone, Debug, Default)]
pub struct WorldAssumptions {
    /// The world; none: literally.
    pub world: Option<&'static PaperWorld>,
    /// Values from the user.
    pub set: Vec<Setting>,
    /// Values of a point.
    pub point: Vec<PointSetting>,
}

impl WorldAssumptions {
    /// Values from the user alone.
    pub fn literal(set: &[Setting]) -> Self {
        WorldAssumptions { set: set.to_vec(), ..WorldAssumptions::default() }
    }
    /// The same values in a world.
    pub fn within(&self, world: &'static PaperWorld) -> Self {
        WorldAssumptions { world: Some(world), ..self.clone() }
    }
    /// The same with the values of a point.
    pub fn at(&self, point: &[PointSetting]) -> Self {
        WorldAssumptions { point: point.to_vec(), ..self.clone() }
    }
    /// The value of a choice that the paper has to make: that of the point, or of the world.
    pub fn choice(&self, key: &str) -> Option<&str> {
        let at_point = self.point.iter().find(|s| s.part == CHOICE && s.key == key).map(|s| s.value.as_str());
        at_point.or_else(|| self.world.and_then(|world| world.choice(key)))
    }
    /// Changes the settings of a run that has these parts.
    pub(crate) fn apply(&self, settings: &mut Vec<Setting>, parts: &[RunPart<'_>]) {
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
        for PointSetting { part, key, value } in &self.point {
            if part == SCENARIO {
                settings.push(set(key, value));
            }
            for (_, table) in parts.iter().filter(|(name, _)| name == part) {
                settings.push(set(format!("{table}.{key}"), value));
            }
        }
    }
    /// Names the world and the values, for measurements that are kept.
    pub fn inputs(&self) -> String {
        let world = self.world.map(|world| (world.name, world.settings));
        let point: Vec<_> = self.point.iter().map(|s| (&s.part, &s.key, &s.value)).collect();
        format!("{world:?} {:?} {point:?}", self.set)
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

    /// Breaks: a search measures something else than its points say: a world or a value from the user wins
    /// over the point, a path of the scenario is lost, or a choice is not the point's.
    #[test]
    fn a_point_decides() {
        let point = |part: &str, key: &str, value: &str| PointSetting {
            part: part.into(),
            key: key.into(),
            value: value.into(),
        };
        let all = [
            point("sender", "abc", "on"),
            point(SCENARIO, "links.l.loss", "0.1"),
            point(CHOICE, "window", "7"),
        ];
        let assumed = WorldAssumptions::literal(&[set("x.abc", "user")]).within(&WORLD).at(&all);
        let mut settings = Vec::new();
        assumed.apply(&mut settings, &[("sender", "x".to_owned())]);
        let expected =
            [set("x.abc", "off"), set("x.abc", "user"), set("x.abc", "on"), set("links.l.loss", "0.1")];
        assert_eq!(settings, expected);
        assert_eq!((assumed.choice("window"), assumed.choice("other")), (Some("7"), None));
        assert_eq!(WorldAssumptions::default().within(&WORLD).choice("window"), Some("9"));
    }
}

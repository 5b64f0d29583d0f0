//! Styles: the sixteen colour names that every terminal maps to its own colours, and modifiers.

use ratatui::style::{Color, Modifier, Style};

/// The terminal's background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Theme {
    /// Dark.
    Dark,
    /// Light.
    Light,
    /// No colours, only bold, dim, underlined and reversed.
    None,
}

impl Theme {
    /// The theme for the environment: none with `NO_COLOR` or on a dumb terminal, light if
    /// `COLORFGBG` asks for it.
    pub fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Self {
        let is_set = |name: &str| variable(name).is_some_and(|value| !value.is_empty());
        if is_set("NO_COLOR") || variable("TERM").is_some_and(|term| term == "dumb") {
            return Self::None;
        }
        let background = variable("COLORFGBG");
        match background.as_deref().and_then(|pair| pair.rsplit(';').next()) {
            Some("7" | "15") => Self::Light,
            _ => Self::Dark,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look(pub Theme);

impl Look {
    fn coloured(self, dark: Color, light: Color) -> Style {
        match self.0 {
            Theme::Dark => Style::new().fg(dark),
            Theme::Light => Style::new().fg(light),
            Theme::None => Style::new(),
        }
    }

    pub fn good(self) -> Style {
        self.coloured(Color::Green, Color::Green)
    }

    /// Failed, absent, stopped.
    pub fn bad(self) -> Style {
        self.coloured(Color::Red, Color::Red).add_modifier(Modifier::BOLD)
    }

    /// Not yet as it should be, or rolled back.
    pub fn warn(self) -> Style {
        self.coloured(Color::Yellow, Color::Magenta)
    }

    pub fn busy(self) -> Style {
        self.coloured(Color::Cyan, Color::Blue)
    }

    pub fn chart(self) -> Style {
        self.coloured(Color::Cyan, Color::Blue)
    }

    pub fn title(self) -> Style {
        self.coloured(Color::Cyan, Color::Blue).add_modifier(Modifier::BOLD)
    }

    /// Text that only guides the eye.
    pub fn faint(self) -> Style {
        match self.0 {
            // Dim text on white is often invisible.
            Theme::Light => Style::new().fg(Color::DarkGray),
            Theme::Dark | Theme::None => Style::new().add_modifier(Modifier::DIM),
        }
    }

    pub fn strong(self) -> Style {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        match self.0 {
            // Bold grey, which some light terminals use for bold text, is hard to see.
            Theme::Light => bold.fg(Color::Black),
            Theme::Dark | Theme::None => bold,
        }
    }

    /// The row or tab under the cursor.
    pub fn selected(self) -> Style {
        let reversed = Style::new().add_modifier(Modifier::REVERSED);
        match self.0 {
            Theme::Dark | Theme::Light => reversed.add_modifier(Modifier::BOLD),
            // Bold replaces colours there.
            Theme::None => reversed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_which_theme() {
        let check = |set: &[(&str, &str)], expected| {
            let variable = |name: &str| {
                let found = set.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(Theme::of_environment(variable), expected, "{set:?}");
        };
        check(&[], Theme::Dark);
        check(&[("NO_COLOR", "1")], Theme::None);
        check(&[("NO_COLOR", "")], Theme::Dark);
        check(&[("TERM", "dumb")], Theme::None);
        check(&[("COLORFGBG", "0;15")], Theme::Light);
        check(&[("COLORFGBG", "15;0")], Theme::Dark);
        check(&[("COLORFGBG", "0;default;15"), ("NO_COLOR", "1")], Theme::None);
    }
}

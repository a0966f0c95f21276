//! Coding trees, which heads over structure build and a bundle keeps.

use cladist_core::bundle::Writer;
use cladist_core::taxonomy::CodingTrees;

use super::{Component, Ground, Origin};
use crate::error::Result;
use crate::heads::HeadContext;

impl Component for CodingTrees {
    fn begin(&mut self, origin: &Origin<'_>, ground: &Ground<'_>) -> Result<()> {
        if let Origin::Bundle(folder) = origin {
            *self = Self::load(folder)?;
        }
        *self = std::mem::take(self).unless(ground.cancel);
        Ok(())
    }

    fn inform<'a>(&'a self, context: &mut HeadContext<'a>) {
        context.trees = self;
    }

    fn save(&self, writer: &Writer) -> Result<()> {
        Ok(Self::save(self, writer)?)
    }
}

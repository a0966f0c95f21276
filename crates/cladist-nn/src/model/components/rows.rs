//! Groups of labels and rows of their weights, if there is a shortlist.

use std::sync::Arc;

use cladist_core::Job;
use cladist_core::bundle::Writer;
use cladist_core::label_tree::Partition;

use super::{Component, Ground, Lent, Origin, Outside};
use crate::encoder::PackedWeights;
use crate::error::{Error, Result};
use crate::heads::{HeadContext, Outputs, Task};
use crate::model::Network;
use crate::seeds;
use crate::shortlist::{ROWS, Rows, Shortlist, Table};

/// The file of the groups.
const GROUPS_FILE: &str = "groups.safetensors";
/// The file of the rows.
const ROWS_FILE: &str = "rows.safetensors";

/// Groups, and a row for each label of them unless groups alone are learnt.
#[derive(Debug, Default)]
pub(crate) struct LabelRows {
    pub(crate) shortlist: Option<Arc<Shortlist>>,
    pub(crate) table: Option<Table>,
}

impl Component for LabelRows {
    fn begin(&mut self, origin: &Origin<'_>, ground: &Ground<'_>) -> Result<()> {
        let (config, n_labels) = (ground.design.shortlist, ground.taxonomy.n_labels());
        if !config.is_on() {
            return Ok(());
        }
        if ground.design.task == Task::MultiClass {
            return Err(Error::Head {
                problem: "a softmax needs all labels, not a shortlist".to_owned(),
                remedy: "leave `shortlist.group_size` at 0, or use the task `multi-label`",
            });
        }
        self.shortlist = match origin {
            Origin::New { examples, seed } => {
                let job = Job { cancel: ground.cancel.clone(), ..Job::silent() };
                config.group(examples, n_labels, *seed, &job)?.map(Arc::new)
            }
            Origin::Bundle(folder) => {
                let partition = Partition::read(&folder.join(GROUPS_FILE), n_labels)?;
                Some(Arc::new(Shortlist { partition, config }))
            }
        };
        Ok(())
    }

    fn inform<'a>(&'a self, context: &mut HeadContext<'a>) {
        context.shortlist = self.shortlist.as_ref();
    }

    fn complete(&mut self, origin: &Origin<'_>, ground: &Ground<'_>, network: &Network) -> Result<()> {
        let Some(shortlist) = &self.shortlist else { return Ok(()) };
        let Some(listed) = network.head.outputs().and_then(Outputs::listed) else {
            let name = ground.design.head.name();
            return Err(Error::Head {
                problem: format!("the head `{name}` cannot learn from a shortlist of labels"),
                remedy: "leave `shortlist.group_size` at 0, or use `flat` or `light-xml` without branches",
            });
        };
        let Some(width) = listed.row_width() else { return Ok(()) };
        let n_rows = shortlist.partition.n_rows();
        self.table = Some(match origin {
            Origin::Bundle(folder) => Table::open(&folder.join(ROWS_FILE), n_rows, width)?,
            Origin::New { seed, .. } => {
                let table = Table::new(n_rows, width, seeds::derive(*seed, seeds::ROWS));
                if ground.design.prior_bias {
                    let biases = shortlist.row_biases(ground.counts);
                    table.with_biases(|row| biases[row])
                } else {
                    table
                }
            }
        });
        Ok(())
    }

    fn save(&self, writer: &Writer) -> Result<()> {
        if let Some(shortlist) = &self.shortlist {
            shortlist.partition.write(&writer.path(GROUPS_FILE))?;
        }
        self.table.as_ref().map_or(Ok(()), |table| table.write(&writer.path(ROWS_FILE)))
    }

    fn lend<'a>(&'a self, _network: &Network, _packed: Option<&PackedWeights>, lent: &mut Lent<'a>) {
        lent.rows = self.table.as_ref().map(Rows::new);
    }

    fn outside(&self) -> Option<Outside<'_>> {
        let table = self.table.as_ref()?;
        Some((ROWS, vec![table.n_rows(), table.width()], table.values()))
    }

    fn outside_mut(&mut self) -> Option<&mut Vec<f32>> {
        self.table.as_mut().map(Table::values_mut)
    }
}

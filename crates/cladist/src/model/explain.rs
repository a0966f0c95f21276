//! Which words a label rests on.

use cladist_core::explain::{Explanation, Faithfulness, check, leave_one_out, scored};
use cladist_core::{Document, LabelId, Request};
use cladist_nn::analysis::attribution::Gradients;

use super::Model;
use crate::error::{Error, Result};
use crate::observe::Work;
use crate::results::ByLabel;

/// Points between an empty document and the document at which integrated gradients are taken.
const STEPS: usize = 32;

/// How the importance of words is found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExplainMethod {
    /// By how much the probability falls without a word; works with any model.
    #[default]
    LeaveOneOut,
    /// What attends to what, of heads with label-wise attention.
    Attention,
    /// Gradient of the logit times the embedding.
    GradientXInput,
    /// Gradients along the way from an empty document.
    IntegratedGradients,
}

/// What is explained, and how.
#[derive(Debug, Clone)]
pub struct ExplainOptions<'a> {
    /// How importance is found.
    pub method: ExplainMethod,
    /// Ids of the labels; without any, the best ones of the document.
    pub labels: Vec<String>,
    /// How many of the best, 1 or more.
    pub top_k: usize,
    /// Parts that a document is taken into at most, 1 or more: each costs one scoring; with more words, several make a part.
    pub max_words: usize,
    /// Who watches, and when to stop.
    pub work: Work<'a>,
}

impl Default for ExplainOptions<'_> {
    fn default() -> Self {
        Self {
            method: ExplainMethod::default(),
            labels: Vec::new(),
            top_k: 3,
            max_words: 200,
            work: Work::default(),
        }
    }
}

impl Model {
    /// Why labels got their probabilities, the best first.
    pub fn explain(&self, document: &Document, options: &ExplainOptions<'_>) -> Result<Vec<ByLabel>> {
        let found = self.explanations(document, options)?;
        Ok(found.iter().map(|found| ByLabel::new(found, &document.text, self.taxonomy())).collect())
    }

    /// The same with how faithful the explanations are: what the probability loses without the most important words, and
    /// with them alone. `seed` draws the random words they are compared with.
    pub fn explain_and_check(
        &self,
        document: &Document,
        options: &ExplainOptions<'_>,
        seed: u64,
    ) -> Result<(Vec<ByLabel>, Faithfulness)> {
        let found = self.explanations(document, options)?;
        let request = request(options);
        let faithful = self.threads.run(|| check(self.pipeline(), document, &found, seed, &request))?;
        let labels = found.iter().map(|found| ByLabel::new(found, &document.text, self.taxonomy())).collect();
        Ok((labels, faithful))
    }

    /// Checks options before the first document.
    pub fn check_explain(&self, options: &ExplainOptions<'_>) -> Result<()> {
        for (key, n) in [("top_k", options.top_k), ("max_words", options.max_words)] {
            if n == 0 {
                return Err(Error::setting(key, "must be at least 1: 0"));
            }
        }
        let head = self.config().head();
        if self.trained_on().features {
            return Err(Error::Unsupported { head, problem: "was trained on features, which have no words" });
        }
        self.label_ids(&options.labels)?;
        if options.method == ExplainMethod::LeaveOneOut {
            return Ok(());
        }
        if self.network().is_none() {
            return Err(Error::Unsupported {
                head,
                problem: "has no gradients and no attention to explain by",
            });
        }
        if !self.pipeline().normalise.is_identity() {
            return Err(Error::Unsupported {
                head,
                problem: "normalises texts first (`data.normalise`), so that its words are not those of the text",
            });
        }
        Ok(())
    }

    fn label_ids(&self, ids: &[String]) -> Result<Vec<LabelId>> {
        let label = |id: &String| {
            self.taxonomy().get(id).ok_or_else(|| {
                Error::setting("labels", format!("names `{id}`, which is not a label of the model"))
            })
        };
        ids.iter().map(label).collect()
    }

    fn explanations(&self, document: &Document, options: &ExplainOptions<'_>) -> Result<Vec<Explanation>> {
        self.check_explain(options)?;
        options.work.cancel.check()?;
        let labels = self.label_ids(&options.labels)?;
        self.threads.run(|| self.found(document, &labels, options))
    }

    fn found(
        &self,
        document: &Document,
        labels: &[LabelId],
        options: &ExplainOptions<'_>,
    ) -> Result<Vec<Explanation>> {
        let request = request(options);
        let how = match options.method {
            ExplainMethod::LeaveOneOut => {
                let found = leave_one_out(self.pipeline(), document, labels, options.max_words, &request)?;
                return Ok(found);
            }
            ExplainMethod::Attention => None,
            ExplainMethod::GradientXInput => Some(Gradients::AtDocument),
            ExplainMethod::IntegratedGradients => Some(Gradients::Integrated(STEPS)),
        };
        let head = self.config().head();
        let network = self
            .network()
            .ok_or(Error::Unsupported { head, problem: "has no gradients and no attention to explain by" })?;
        let scored = scored(self.pipeline(), document, labels, &request)?;
        let labels: Vec<LabelId> = scored.iter().map(|(label, _)| *label).collect();
        let parts = match how {
            Some(how) => network.attribute(&document.text, &labels, how, &options.work.cancel)?,
            None => network
                .attend(&document.text, &labels)?
                .ok_or(Error::Unsupported { head, problem: "has no label-wise attention" })?,
        };
        let found = scored.into_iter().zip(parts);
        Ok(found.map(|((label, score), parts)| Explanation { label, score, parts }).collect())
    }
}

fn request<'a>(options: &ExplainOptions<'_>) -> Request<'a> {
    Request { top_k: Some(options.top_k), job: options.work.quiet_job(), ..Request::default() }
}

//! Experiments of the literature, tuning, and studies of trained models.

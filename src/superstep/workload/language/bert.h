// Transformer encoders that fill in masked words: J. Devlin et al., arXiv 1810.04805; V. Sanh et al.,
// DistilBERT, arXiv 1910.01108.
#pragma once

#include "superstep/workload/workload.h"

namespace superstep::workload {

// input_ids, attention_mask i64 [N, T] -> logits f32 [N, T, vocabulary], by the table of embeddings itself.
// Four layers of width 256, for a synthetic language whose entropy is known.
Workload bert_small();
// Six layers of width 768, no token types, no pooler; 66,362,880 parameters.
Workload distilbert();

}  // namespace superstep::workload

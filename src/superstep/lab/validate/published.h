// The published rows that the program has: data/published/*.csv.
#pragma once

#include "superstep/lab/validate/table.h"

namespace superstep::lab {

// Rates and times that predictions are held against (results.csv); what `validate` takes without a file.
const PublishedTable& published_results();
// What the same papers publish beside them (further.csv): qualities of models, figures without a model.
const PublishedTable& further_published();

}  // namespace superstep::lab

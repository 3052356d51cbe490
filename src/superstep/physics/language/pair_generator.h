// Pairs of paragraphs for the pre-training of BERT (J. Devlin et al., arXiv 1810.04805, section 3.1): words
// to fill in, and whether the second paragraph follows the first. Several pairs may be packed into one block,
// which then do not see each other (M. Krell et al., arXiv 2107.02027).
//
// Every document has paragraphs of a number of sentences of its own. Half of the pairs are two paragraphs of
// one document, so that who counts sentences knows what can be known: pairs of unequal numbers do not follow.
// Words tell nothing beside, and the least loss at hidden words is that of each sentence alone.
#pragma once

#include "superstep/physics/generator.h"
#include "superstep/physics/language/language_generator.h"

namespace superstep::data {

GeneratorEntry bert_large_generator();

// Sentences of a paragraph in blocks of `length` tokens: 1 to so many, all alike.
int most_sentences(int length);

inline constexpr int follows = 0, does_not_follow = 1;  // labels, as BERT's own program has them

}  // namespace superstep::data

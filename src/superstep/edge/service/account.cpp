#include "superstep/edge/service/account.h"

namespace superstep::edge {

const char* name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::served: return "served";
    case Outcome::refused: return "refused";
    case Outcome::dropped: return "dropped";
    case Outcome::expired: return "expired";
    case Outcome::failed: return "failed";
    case Outcome::invalid: return "invalid";
    case Outcome::closed: return "closed";
  }
  return "?";
}

bool Account::balances() const {
  Tally sum = waiting;
  sum += running;
  for (const Tally& tally : outcomes) sum += tally;
  return sum == received;
}

}  // namespace superstep::edge
